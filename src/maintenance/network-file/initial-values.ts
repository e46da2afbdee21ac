// Records that the controller made: the network file leaves them out while they are as they were made.
import type { SqlBool } from 'kysely'
import { getCompiledResource } from '../../definitions/model/index.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { applyFallbacks } from '../../definitions/schema/bodies.ts'
import { toTunnelerRecords } from '../../network/routers/router-provisioner.ts'
import { selectRows } from '../../storage/entities/subtypes.ts'
import { sqlText } from '../../storage/lists/sql-text.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { toFileRecord } from './file-records.ts'
import type { FileResource } from './file-resources.ts'

type Values = Readonly<Record<string, unknown>>

/** The records of a resource that the controller made, with their initial values. */
export class InitialValues {
  readonly #fileResource: FileResource
  readonly #routerIdentityIds: ReadonlySet<string>

  private constructor(fileResource: FileResource, routerIdentityIds: ReadonlySet<string>) {
    this.#fileResource = fileResource
    this.#routerIdentityIds = routerIdentityIds
  }

  /** For some records of a resource. */
  static async load(
    { db }: Pick<ReadContext, 'db'>,
    fileResource: FileResource,
    entities: readonly Values[],
  ): Promise<InitialValues> {
    if (!isIdentities(fileResource.resource)) return new InitialValues(fileResource, new Set())
    const rows = await db
      .selectFrom('routers')
      .select('id')
      .where('isTunnelerEnabled', '=', 1)
      .where(
        isOneOf(
          db,
          'id',
          entities.map(({ id }) => id as string),
        ),
      )
      .execute()
    return new InitialValues(fileResource, new Set(rows.map(({ id }) => id)))
  }

  /** Whether the controller made the record: it is not created or deleted by a file. */
  isMade(entity: Values): boolean {
    return entity.isSystem === true || this.#find(entity) !== undefined
  }

  /** Whether the file leaves the record out: administrators have configured nothing of it. */
  isLeftOut(entity: Values): boolean {
    if (entity.isSystem === true) return true
    const initial = this.#find(entity)
    if (!initial) return false
    const { fields } = this.#fileResource.resource
    return this.#toText(entity) === this.#toText(applyFallbacks(fields, initial))
  }

  /** The values of the record when the controller made it. */
  #find(entity: Values): Values | undefined {
    const { resource } = this.#fileResource
    const builtIn = resource.builtIn.find(({ id }) => id === entity.id)
    if (builtIn) return builtIn
    if (!isIdentities(resource)) return undefined
    if (entity.isDefaultAdmin === true) return { name: entity.name, typeId: 'Default', isAdmin: true }
    return this.#routerIdentityIds.has(entity.id as string)
      ? toTunnelerRecords(entity as { id: string; name: string }).identity
      : undefined
  }

  #toText(entity: Values): string {
    return JSON.stringify(toFileRecord(this.#fileResource, entity, (_target, id) => id))
  }
}

/** The rows of a resource itself, not of its subtypes, for which `isMade` is false: a plan counts them in tables of any size. */
export function selectConfigured(db: ReadContext['db'], resource: AnyResource) {
  let rows = selectRows(db, resource)
  const { subtypes } = getCompiledResource(resource.plural)
  const isColumn = (name: string) => sqlText.ref(`${resource.table}.${name}`)
  for (const { subtypeOf } of subtypes)
    if (subtypeOf) rows = rows.where(sqlText<SqlBool>`${isColumn(subtypeOf.discriminator)} = 0`)
  if ('isSystem' in resource.fields) rows = rows.where(sqlText<SqlBool>`${isColumn('isSystem')} = 0`)
  for (const { id } of resource.builtIn) rows = rows.where(sqlText<SqlBool>`${isColumn('id')} <> ${id}`)
  if (!isIdentities(resource)) return rows
  return rows
    .where(sqlText<SqlBool>`${isColumn('isDefaultAdmin')} = 0`)
    .where(
      sqlText<SqlBool>`not exists (select 1 from routers r where r.id = ${isColumn('id')} and r.${sqlText.ref('isTunnelerEnabled')} = 1)`,
    )
}

function isIdentities({ plural }: AnyResource): boolean {
  return plural === identities.plural
}
