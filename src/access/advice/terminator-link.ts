// The last link of a dial: the terminators of the service.
import type { Evidence } from '../../posture/evaluate-check.ts'
import { type Link, type Remedy, toSentenceList } from './chain.ts'
import type { AdviceQuestion } from './subject.ts'

export async function terminatorLink({ context, access, service }: AdviceQuestion): Promise<Link> {
  const { db } = context
  const { live } = access
  const rows = await db
    .selectFrom('terminators as terminator')
    .leftJoin('sessions as session', 'session.id', 'terminator.sessionId')
    .select(['terminator.id', 'routerId', 'address', 'precedence', 'sessionId', 'session.id as liveSessionId'])
    .where('terminator.serviceId', '=', service.id)
    .orderBy('terminator.id')
    .execute()
  const link = { link: 'terminator' } as const
  if (rows.length === 0) {
    return { ...link, outcome: 'failed', message: `${service.name} has no terminator` }
  }
  const terminators = rows.map(({ id, routerId, address, precedence, sessionId, liveSessionId }) => {
    const hasHostLostRight = sessionId !== '' && liveSessionId === null
    const isFailing = precedence === 'failed' || hasHostLostRight
    return { id, address, health: isFailing ? 'failing' : healthOf(live.terminators.healthOf(id), routerId) }
  })
  const addresses = (health: string) => terminators.flatMap((one) => (one.health === health ? [one.address] : []))
  const healthy = addresses('passing')
  if (healthy.length > 0) {
    return {
      ...link,
      outcome: 'passed',
      message: `${service.name} is hosted at ${toSentenceList(healthy)}`,
      terminators,
    }
  }
  const unknown = addresses('unknown')
  if (unknown.length > 0) {
    const message = `the health of the terminators of ${service.name} is unknown: ${toSentenceList(unknown)}`
    return { ...link, outcome: 'unknown', message, terminators }
  }
  const message = `every terminator of ${service.name} has failed: ${toSentenceList(addresses('failing'))}`
  const marked = rows.find(({ precedence }) => precedence === 'failed')
  const remedy = marked && makeDefault(marked.id)
  return { ...link, outcome: 'failed', message, terminators, ...(remedy ? { remedy } : {}) }

  /** Nothing is reached behind a router that is not there. */
  function healthOf(known: Evidence, routerId: string): Evidence {
    const presence = live.network.getPresence(routerId)
    if (presence === 'offline') return 'failing'
    return presence === 'unknown' ? 'unknown' : known
  }
}

function makeDefault(id: string): Remedy {
  return { operation: 'update', resource: 'terminators', record: { id }, values: { precedence: 'default' } }
}
