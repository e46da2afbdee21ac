// Refuses requests with an invalid head before routing: an ambiguous or foreign host, or a body that is too large.

import { errors, invalidError } from '../../../src/foundation/errors.ts'
import type { Config } from '../../../src/settings/settings.ts'
import { createHostCheck } from '../own-hosts.ts'
import { getListener } from '../requests.ts'
import type { Check } from './check.ts'

export function checkHead(config: Config): Check {
  const maxBytesBeforeSession = config['limits.bodyBeforeSession']
  const maxBytesInSession = config['limits.body']
  const isOwnHost = createHostCheck(config)
  const maxBytesOfFile = Math.max(maxBytesInSession, config['limits.networkFile'])
  return (request, reply) => {
    const { caller, route } = request.state
    const isFile = route.operation?.bodyLimit === 'limits.networkFile'
    const maxBytes = caller.kind === 'anonymous' ? maxBytesBeforeSession : isFile ? maxBytesOfFile : maxBytesInSession
    if (countHosts(request.raw.rawHeaders) > 1) return invalidError('Host', 'must be sent once')
    if (getListener(request.raw)?.tls === false && !isOwnHost(request.headers.host))
      return invalidError('Host', 'must be a loopback name or address, or one that this controller advertises')
    if (Number(request.headers['content-length'] ?? 0) <= maxBytes) return undefined
    // Otherwise the rest of the body would be received only to be thrown away.
    reply.header('connection', 'close')
    return errors.REQUEST_ENTITY_TOO_LARGE()
  }
}

/** Node keeps the first of several `Host` headers and drops the others, so `headers` does not show them. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count
}
