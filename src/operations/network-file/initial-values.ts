// Records that the controller made: the network file leaves them out while they are as they were made.

import type { AnyResource } from '../../definitions/resources/define.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { applyFallbacks } from '../../definitions/schema/bodies.ts'
import { toTunnelerRecords } from '../../network/routers/router-provisioner.ts'
import type { ReadContext } from '../../storage/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { toFileRecord } from './file-records.ts'
import type { FileResource } from './file-resources.ts'

type Values = Readonly<Record<string, unknown>>

/** Which records of a resource the controller made, and what they were at first. */
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

  /** What the record was when the controller made it. */
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

function isIdentities({ plural }: AnyResource): boolean {
  return plural === identities.plural
}
