// Changes of routers on the fabric API. A router can be created there with its certificate, and then does not enroll.
import { routers } from '../../../src/definitions/resources/routers.ts'
import { applyFallbacks } from '../../../src/definitions/schema/bodies.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { invalidError } from '../../../src/foundation/errors.ts'
import { find, newEntity } from '../../../src/storage/entities/entities.ts'
import type { AnyOperation, Call } from '../../api/operation.ts'
import { requireRow } from '../../responses/record-responses.ts'
import { makeChangeOperations, type ShapeValues } from './change-operations.ts'
import { routerShape } from './shapes.ts'

const { name, cost, noTraversal, disabled } = routers.fields
/** The members that a replacement resets: the fabric API does not show the other members of a router. */
const fields = { name, cost, noTraversal, disabled, tags: f.tags() }

// A router names itself by the common name of its certificate. Other characters have meanings in paths, filters and policies.
const ROUTER_ID = /^[A-Za-z0-9._-]{1,100}$/
const FINGERPRINT_LENGTH = 40

export const routerChangeOperations: readonly AnyOperation[] = makeChangeOperations({
  shape: routerShape,
  resource: routers,
  summaries: {
    create: 'Creates a router that has a certificate already. Without a fingerprint it enrolls, as other routers do.',
    delete: 'Deletes one router, with its terminators.',
  },
  create: createRouter,
  async update({ controller, context, body: { fingerprint, ...values } }, verb, id) {
    const row = await requireRow(context, routers, id)
    // Routers that enrolled renew their certificates themselves.
    if (fingerprint !== undefined && fingerprint !== null && fingerprint !== row.fingerprint)
      throw invalidError('fingerprint', 'cannot change: create the router again, or let it enroll again', fingerprint)
    await controller.entities.patch(context, routers, id, verb === 'replace' ? applyFallbacks(fields, values) : values)
  },
})

/** @throws COULD_NOT_VALIDATE if the id or the fingerprint cannot be that of a router, or a router has the id */
async function createRouter({ controller: { entities }, context, body }: Call<ShapeValues>): Promise<{ id: string }> {
  const { fingerprint = null } = body as { fingerprint?: string | null }
  const id = body.id as string
  if (!ROUTER_ID.test(id))
    throw invalidError('id', 'must be 1 to 100 letters, digits, dots, hyphens and underscores', id)
  if (fingerprint !== null && fingerprint.length !== FINGERPRINT_LENGTH)
    throw invalidError('fingerprint', `must have ${FINGERPRINT_LENGTH} hexadecimal digits`, fingerprint)
  const draft = newEntity(context, routers, { ...body, fingerprint, isVerified: fingerprint !== null } as never)
  const insert = await entities.prepareInsert(context, routers, draft)
  return context.write(async (tx) => {
    if (await find(tx, routers, id)) throw invalidError('id', 'is taken', id)
    await insert(tx)
    return { id }
  })
}
