// Edge routers that enroll, because clients are shown no others.
import { type Api, CLIENT, forEach, MANAGEMENT, RefusedRequestError } from '../controller/api.ts'
import { NotBuiltYet } from '../not-built-yet.ts'
import type { Network } from './network.ts'
import { clientKey } from './signing-request.ts'

interface EdgeRouterRecord {
  readonly id: string
  readonly enrollmentToken?: string
  readonly roleAttributes: readonly string[]
}

/**
 * Lets one edge router of each region enroll, so that every identity sees one; returns how many.
 * @throws NotBuiltYet if the controller enrolls no routers
 */
export function enrolledRouters(network: Network): Promise<number> {
  return network.once('routers', () => enrollOneInEachRegion(network))
}

async function enrollOneInEachRegion({ api, model }: Network): Promise<number> {
  const routers = await api.records<EdgeRouterRecord>('/edge-routers', 'true sort by name', model.edgeRouters)
  const firsts = [...new Map(routers.map((router) => [router.roleAttributes[0], router])).values()]
  await forEach(firsts, (router) => enroll(api, router))
  return firsts.length
}

/** With a new token, because those of a network that was kept for some hours have expired. */
async function enroll(api: Api, { id }: EdgeRouterRecord): Promise<void> {
  const path = `${MANAGEMENT}/edge-routers/${id}`
  await api.asAdministrator({ method: 'POST', path: `${path}/re-enroll` })
  const { enrollmentToken } = (await api.asAdministrator({ method: 'GET', path })) as EdgeRouterRecord
  try {
    await api.data({
      method: 'POST',
      path: `${CLIENT}/enroll?method=erott&token=${enrollmentToken}`,
      body: { certCsr: clientKey(id).request, serverCertCsr: clientKey(id).request },
    })
  } catch (error) {
    const isUnknown = error instanceof RefusedRequestError && error.code === 'INVALID_ENROLLMENT_TOKEN'
    throw isUnknown ? new NotBuiltYet('the enrollment of edge routers') : error
  }
}
