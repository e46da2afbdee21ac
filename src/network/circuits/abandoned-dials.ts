// Hosts that a dial may stop, if its client has given it up.
//
// The Go SDK accepts one connection after the other. From 1.2 on it begins each by writing to its client, which waits until the client
// has begun, too, or for three minutes.
import { prepareQuery } from '../../storage/prepared-queries.ts'

interface HostRow {
  readonly sdkInfo: string
}

/** The programs of the identities that host a service. */
export const findHostPrograms = prepareQuery<[serviceId: string], HostRow>((db, serviceId) =>
  db
    .selectFrom('terminators')
    .innerJoin('identities', 'identities.id', 'terminators.hostId')
    .select('identities.sdkInfo')
    .distinct()
    .where('terminators.serviceId', '=', serviceId),
)

const GO_SDK = 'ziti-sdk-golang'

/** Whether a host waits for a client that does not come, and accepts no other one meanwhile. */
export function waitsForClient({ sdkInfo }: HostRow): boolean {
  const { type, version = '' } = JSON.parse(sdkInfo) as { type?: string; version?: string }
  const [, major, minor] = /^v?(\d+)\.(\d+)\./.exec(version) ?? []
  if (type !== GO_SDK || major === undefined) return false
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 2)
}
