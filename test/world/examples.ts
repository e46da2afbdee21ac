// Bodies that make a valid record of each resource, from the examples of the definitions.
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { getResource } from '../../src/definitions/resources/index.ts'
import { applyFallbacks } from '../../src/definitions/schema/bodies.ts'
import { toMemberName } from '../../src/definitions/schema/fields.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { isOneOf, untyped } from '../../src/storage/untyped.ts'
import { makeAuthority } from './authorities.ts'
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
  if (body.certPem === 'ca.pem') body.certPem = (await makeAuthority(`CN=${name}`)).pem
  for (const [field, { kind, options }] of Object.entries(resource.fields)) {
    const member = toMemberName(field, resource.fields[field] as never)
    // A structured value that a record may lack.
    if (kind.members && options.nullable) body[member] ??= applyFallbacks(kind.members, {})
    if (options.unique && kind.name === 'text' && field !== 'name' && body[member] !== undefined)
      body[member] = `${body[member]} of ${name}`
    if (kind.name !== 'reference' || !kind.target || options.access === 'read' || body[member] === undefined) continue
    const named = String(body[member])
    const own = `${named} of ${name}`
    body[member] =
      (await idOf(world, kind.target, named)) ??
      (await idOf(world, kind.target, own)) ??
      (await makeExample(world, kind.target, own))
  }
  return body
}

async function idOf({ controller }: TestController, plural: string, nameOrId: string): Promise<string | undefined> {
  const { db } = controller.store
  const { table, fields } = getResource(plural)
  const rows = await untyped(db)
    .selectFrom(table)
    .select('id')
    .where((eb) =>
      'name' in fields
        ? eb.or([isOneOf(db, 'id', [nameOrId]), isOneOf(db, 'name', [nameOrId])] as never)
        : (isOneOf(db, 'id', [nameOrId]) as never),
    )
    .execute()
  return rows[0]?.id as string | undefined
}

/** Makes a record of that name, by the example of its resource: as callers do, or past the API where they cannot. */
export async function makeExample(world: TestController, plural: string, name: string): Promise<string> {
  const target = getResource(plural)
  if (!target.verbs.includes('create')) {
    const texts = Object.entries(target.fields).filter(
      ([, { kind, options }]) => options.unique && kind.name === 'text',
    )
    const values = { ...Object.fromEntries(texts.map(([field]) => [field, name])), name }
    return (
      await world.system.write(async (tx) =>
        world.controller.entities.insert(tx, target, newEntity(tx, target, values)),
      )
    ).id
  }
  const body = await exampleBody(world, target, name)
  const creation = await world.send({
    method: 'POST',
    path: `${MANAGEMENT}/${plural}`,
    token: await world.admin(),
    body,
  })
  return creation.body.data.id as string
}
