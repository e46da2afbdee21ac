// Bodies that make a valid record of each resource, from the examples of the definitions.
import type { AnyResource } from '../../src/resources/define.ts'
import { resourceOf } from '../../src/resources/index.ts'
import { memberName } from '../../src/schema/fields.ts'
import { isOneOf, untyped } from '../../src/store/untyped.ts'
import { MANAGEMENT, type TestController } from './controller.ts'

/**
 * The example of a resource with ids in place of names, and values of its own where no two records may share one. What it
 * names and does not exist is made, anew for each example.
 */
export async function exampleBody(
  world: TestController,
  resource: AnyResource,
  name: string,
): Promise<Record<string, unknown>> {
  const body: Record<string, unknown> = { ...resource.example.create }
  if ('name' in resource.fields) body.name = name
  for (const [field, { kind, options }] of Object.entries(resource.fields)) {
    const member = memberName(field, resource.fields[field] as never)
    if (options.unique && field !== 'name' && body[member] !== undefined) body[member] = `${body[member]} of ${name}`
    if (kind.name !== 'reference' || !kind.target || options.access === 'read' || body[member] === undefined) continue
    body[member] = await idOf(world, kind.target, String(body[member]), name)
  }
  return body
}

async function idOf(world: TestController, plural: string, nameOrId: string, owner: string): Promise<string> {
  const { db } = world.controller.store
  const target = resourceOf(plural)
  const { table, fields } = target
  const rows = await untyped(db)
    .selectFrom(table)
    .select('id')
    .where((eb) =>
      'name' in fields
        ? eb.or([isOneOf(db, 'id', [nameOrId]), isOneOf(db, 'name', [nameOrId])] as never)
        : (isOneOf(db, 'id', [nameOrId]) as never),
    )
    .execute()
  if (rows[0]) return rows[0].id as string
  const body = { ...target.example.create, name: `${nameOrId} of ${owner}` }
  const made = await world.send({
    method: 'POST',
    path: `${MANAGEMENT}/${plural}`,
    token: await world.admin(),
    body,
  })
  return made.body.data.id as string
}
