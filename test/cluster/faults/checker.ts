// Judges a run by the log alone, because the log says in which order everything happened.
import type { LoggedCommit } from '../../../src/storage/commit-log.ts'
import type { Grant, History, Moment, Write } from './history.ts'

/** A change of a record, as the log has it. */
interface LoggedChange {
  readonly resource: string
  readonly operation?: string
  readonly id: string
  readonly after?: { readonly name?: string; readonly tags?: { readonly number?: number } } | undefined
}

/** Returns what contradicts the promises of a cluster, a sentence each. */
export function findViolations(log: readonly LoggedCommit[], history: History, leaseMs: number): string[] {
  const changes = log.flatMap((commit) => commit.changes as readonly LoggedChange[])
  return [
    ...findGaps(log),
    ...findLostCreates(changes, history.writes),
    ...findWrongNumbers(changes, history),
    ...findOldReads(changes, history, leaseMs),
    ...findLateGrants(history, leaseMs),
  ]
}

function findGaps(log: readonly LoggedCommit[]): string[] {
  const ids = new Set(log.map(({ id }) => id))
  const gaps = log.slice(1).filter(({ position }, at) => position !== (log[at]?.position ?? 0) + 1)
  return [
    ...gaps.map(({ position }) => `the log has a gap before ${position}`),
    ...(ids.size < log.length ? ['a commit is in the log twice'] : []),
  ]
}

function findLostCreates(changes: readonly LoggedChange[], writes: readonly Write[]): string[] {
  const created = new Map<string, string[]>()
  for (const { resource, operation, id, after } of changes) {
    if (resource !== 'identities' || operation !== 'create' || !after?.name) continue
    created.set(after.name, [...(created.get(after.name) ?? []), id])
  }
  return writes
    .filter(({ kind }) => kind === 'create')
    .flatMap(({ subject, result, id }) => {
      const ids = created.get(subject) ?? []
      if (ids.length > 1) return [`${subject} was created ${ids.length} times`]
      if (result === 'acknowledged' && ids[0] !== id) return [`${subject} was acknowledged, and is not in the log`]
      return result === 'refused' && ids.length > 0 ? [`${subject} was refused, and is in the log`] : []
    })
}

/** Numbers are written to a record by one caller after the other, so the log has each acknowledged one, in the order of time. */
function findWrongNumbers(changes: readonly LoggedChange[], { writes, reads }: History): string[] {
  const violations: string[] = []
  for (const subject of new Set(writes.filter(({ kind }) => kind === 'count').map(({ subject }) => subject))) {
    const places = findPlaces(changes, subject)
    const own = writes.filter((write) => write.kind === 'count' && write.subject === subject)
    for (const { value = 0, result } of own) {
      if (result === 'acknowledged' && !places.has(value))
        violations.push(`the number ${value} of ${subject} was acknowledged, and is not in the log`)
    }
    // Real time: what was acknowledged before another write began is before it in the log.
    let latest = -1
    const byEnd = own.filter(({ result }) => result === 'acknowledged').toSorted((a, b) => a.ended - b.ended)
    const byBegin = own.toSorted((a, b) => a.begun - b.begun)
    let at = 0
    for (const { begun, value = 0 } of byBegin) {
      for (; at < byEnd.length && (byEnd[at]?.ended ?? 0) < begun; at++)
        latest = Math.max(latest, places.get(byEnd[at]?.value ?? 0) ?? -1)
      const place = places.get(value)
      if (place !== undefined && place < latest)
        violations.push(`the number ${value} of ${subject} is in the log before one that was acknowledged earlier`)
    }
    const begunAt = new Map(own.map(({ value = 0, begun }) => [value, begun]))
    for (const { value, ended, node } of reads.filter((read) => read.subject === subject)) {
      const isFuture = (begunAt.get(value) ?? 0) > ended
      if (isFuture || (value !== 0 && !places.has(value)))
        violations.push(`${node} showed the number ${value} of ${subject}, which is not in the log`)
    }
  }
  return violations
}

/** The places in the log of the numbers that were written to a record. */
function findPlaces(changes: readonly LoggedChange[], subject: string): Map<number, number> {
  const logged = changes.flatMap(({ id, after }) =>
    id === subject && after?.tags?.number !== undefined ? [after.tags.number] : [],
  )
  return new Map(logged.map((number, at) => [number, at]))
}

/**
 * A node shows at least what it has acknowledged or shown itself before, and what any node had acknowledged a lease before. A number that
 * was there from the beginning is before all places of the log.
 */
function findOldReads(changes: readonly LoggedChange[], { writes, reads }: History, leaseMs: number): string[] {
  const violations: string[] = []
  for (const subject of new Set(reads.map((read) => read.subject))) {
    const places = findPlaces(changes, subject)
    const placeOf = (value = 0) => places.get(value) ?? -1
    const ofSubject = reads.filter((read) => read.subject === subject).toSorted((a, b) => a.begun - b.begun)
    const acknowledged = writes.filter(
      (write) => write.kind === 'count' && write.subject === subject && write.result === 'acknowledged',
    )
    // By the moment from which a node has to know it; from a lease later on every one has to.
    const evidence = [
      ...[...acknowledged, ...ofSubject].map(({ node, ended, value }) => ({ node, from: ended, value })),
      ...acknowledged.map(({ ended, value }) => ({ node: 'all', from: ended + leaseMs, value })),
    ].toSorted((a, b) => a.from - b.from)
    const least = new Map<string, number>()
    let at = 0
    for (const { node, begun, value } of ofSubject) {
      for (; at < evidence.length && (evidence[at]?.from ?? 0) <= begun; at++) {
        const { node: informed = '', value: number } = evidence[at] ?? {}
        least.set(informed, Math.max(least.get(informed) ?? -1, placeOf(number)))
      }
      const missed = Math.max(least.get(node) ?? -1, least.get('all') ?? -1) - placeOf(value)
      if (missed > 0)
        violations.push(
          `${node} showed the number ${value} of ${subject}, ${missed} changes behind what it had to know`,
        )
    }
  }
  return violations
}

function findLateGrants(history: History, leaseMs: number): string[] {
  return findAgesOfEnds(history).flatMap(({ grant: { node, kind, subject }, age }) =>
    age <= leaseMs ? [] : [`${node} granted ${kind} ${subject} ${Math.round(age)} ms after its end`],
  )
}

/** The grants of rights that had ended, each with the age of that end. */
export function findAgesOfEnds({ writes, grants }: History): { grant: Grant; age: Moment }[] {
  const bySubject = new Map<string, Write[]>()
  for (const write of writes) {
    if (write.kind !== 'end session' && write.kind !== 'set policy') continue
    const ofSubject = bySubject.get(write.subject) ?? []
    bySubject.set(write.subject, ofSubject)
    ofSubject.push(write)
  }
  return grants.flatMap((grant) => {
    const age = grant.isGranted ? findAgeOfEnd(grant, bySubject.get(grant.subject) ?? []) : undefined
    return age === undefined ? [] : [{ grant, age }]
  })
}

/** How long before a grant was asked for its right had ended; undefined if it had not, or may have been given again. */
function findAgeOfEnd({ begun, ended }: Grant, writes: readonly Write[]): Moment | undefined {
  const ends = writes.filter(({ value = 0, result }) => value === 0 && result === 'acknowledged')
  const last = ends.filter((write) => write.ended <= begun).toSorted((a, b) => a.ended - b.ended)
  // The first end after the last moment at which the right may have been given.
  const givenUntil = Math.max(
    Number.NEGATIVE_INFINITY,
    ...writes
      .filter(({ value = 0, begun: at, result }) => value === 1 && result !== 'refused' && at <= ended)
      .map(lastEffect),
  )
  const end = last.find((write) => write.begun > givenUntil)
  return end && begun - end.ended
}

/** Without a response, a change may still have come into effect some time later. */
function lastEffect({ ended, result }: Write): Moment {
  return result === 'unknown' ? Number.POSITIVE_INFINITY : ended
}
