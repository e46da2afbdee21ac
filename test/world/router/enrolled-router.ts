// Routers that have enrolled, over the API as real ones do.
import { clientKey } from '../certificates.ts'
import { CLIENT, MANAGEMENT, type TestController } from '../controller.ts'

export interface EnrolledRouter {
  readonly id: string
  readonly name: string
  /** PEM of its client certificate and the intermediates. */
  readonly cert: string
  readonly serverCert: string
  readonly ca: string
  readonly key: string
}

/** The names at which a router is reached, for its signing requests. */
export const ROUTER_NAMES = [
  { type: 'dns', value: 'router.example' },
  { type: 'ip', value: '127.0.0.1' },
] as const

/** Creates an edge router, or a transit router, and enrolls it. */
export async function enrolledRouter(
  world: TestController,
  { name = 'edge-north', kind = 'edge-routers' }: { name?: string; kind?: 'edge-routers' | 'routers' } = {},
): Promise<EnrolledRouter> {
  const admin = await world.admin()
  const created = await world.send({
    method: 'POST',
    path: `${MANAGEMENT}/${kind}`,
    token: admin,
    body: kind === 'routers' ? { name, cost: 0, noTraversal: false } : { name },
  })
  const id = created.body.data.id as string
  const record = await world.send({ method: 'GET', path: `${MANAGEMENT}/${kind}/${id}`, token: admin })
  const method = kind === 'routers' ? 'trott' : 'erott'
  const [client, server] = [await clientKey(id, 'P-256', ROUTER_NAMES), await clientKey(id, 'P-256', ROUTER_NAMES)]
  const enrolled = await world.send({
    method: 'POST',
    path: `${CLIENT}/enroll?method=${method}&token=${record.body.data.enrollmentToken}`,
    body: { certCsr: client.csr, serverCertCsr: server.csr },
  })
  return { id, name, ...enrolled.body.data, key: client.keyPem }
}
