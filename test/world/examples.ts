// Bodies that make a valid record of each resource, from the examples of the definitions.
import type { AnyResource } from '../../src/resources/define.ts'
import { resourceOf } from '../../src/resources/index.ts'
import { memberName } from '../../src/schema/fields.ts'
import { isOneOf, untyped } from '../../src/store/untyped.ts'
import type { TestController } from './controller.ts'

/** The example of a resource with ids in place of names, and a name of its own. */
export async function exampleBody(
  world: TestController,
  resource: AnyResource,
  name: string,
): Promise<Record<string, unknown>> {
  const body: Record<string, unknown> = { ...resource.example.create }
  if ('name' in resource.fields) body.name = name
  for (const [field, { kind, options }] of Object.entries(resource.fields)) {
    const member = memberName(field, resource.fields[field] as never)
    if (kind.name !== 'reference' || !kind.target || options.access === 'read' || body[member] === undefined) continue
    body[member] = await idOf(world, kind.target, String(body[member]))
  }
  return body
}

async function idOf({ controller }: TestController, plural: string, nameOrId: string): Promise<string> {
  const { db } = controller.store
  const { table, fields } = resourceOf(plural)
  const rows = await untyped(db)
    .selectFrom(table)
    .select('id')
    .where((eb) =>
      'name' in fields
        ? eb.or([isOneOf(db, 'id', [nameOrId]), isOneOf(db, 'name', [nameOrId])] as never)
        : (isOneOf(db, 'id', [nameOrId]) as never),
    )
    .execute()
  return (rows[0]?.id as string | undefined) ?? nameOrId
}
