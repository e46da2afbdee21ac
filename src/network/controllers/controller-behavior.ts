// Shows which controllers of the network are online, as far as this one knows, and where their APIs are.

import type { ApiAddresses, controllers } from '../../definitions/resources/controllers.ts'
import type { ComputedInput } from '../../definitions/resources/define.ts'
import type { Behavior } from '../../storage/behavior.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import type { OidcAnnouncement } from '../routers/oidc-announcement.ts'
import type { ControllerMembership } from './membership.ts'

/** The APIs whose addresses clients are shown. */
const CLIENT_APIS = ['edge-client', 'edge-oidc']

/** How an operation shows controllers. */
export interface ControllerView {
  readonly isForClients: boolean
}

export class ControllerBehavior implements Behavior<typeof controllers> {
  readonly #membership: ControllerMembership
  readonly #oidc: Pick<OidcAnnouncement, 'isActive'>

  constructor(membership: ControllerMembership, oidc: Pick<OidcAnnouncement, 'isActive'>) {
    this.#membership = membership
    this.#oidc = oidc
  }

  async computeFields(
    { db }: ReadContext,
    records: readonly ComputedInput[],
    view: ControllerView | undefined,
  ): Promise<Record<string, unknown>[]> {
    const rows = await db.selectFrom('controllers').select(['id', 'servedAddresses']).execute()
    const served = rows.map(({ id, servedAddresses }) => ({
      id,
      addresses: JSON.parse(servedAddresses) as ApiAddresses,
    }))
    return records.map(({ id, node }) => ({
      isOnline: this.#membership.isOnline(id, node),
      apiAddresses: this.#showAddresses(id, served, view?.isForClients ?? false),
    }))
  }

  #showAddresses(
    id: string,
    served: readonly { readonly id: string; readonly addresses: ApiAddresses }[],
    isForClients: boolean,
  ): ApiAddresses {
    const own = served.find((one) => one.id === id)?.addresses ?? {}
    const isElsewhere = new Set(served.flatMap((one) => (one.id === id ? [] : listUrls(one.addresses))))
    const apis = Object.entries(own).filter(
      ([api]) => (!isForClients || CLIENT_APIS.includes(api)) && (api !== 'edge-oidc' || this.#oidc.isActive),
    )
    // Clients that know several controllers take the first address of each: one that leads to all of them would be no choice.
    const toRank = ({ url }: { readonly url: string }) => (isElsewhere.has(url) ? 1 : 0)
    return Object.fromEntries(
      apis.map(([api, addresses]) => [api, addresses.toSorted((one, other) => toRank(one) - toRank(other))]),
    )
  }
}

function listUrls(addresses: ApiAddresses): string[] {
  return Object.values(addresses).flatMap((ofApi) => ofApi.map(({ url }) => url))
}
