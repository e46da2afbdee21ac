// Callers of a network who go on whatever its nodes meet, and note what they asked for and were told.
import { setTimeout as wait } from 'node:timers/promises'
import { CLIENT, MANAGEMENT } from '../../world/controller.ts'
import type { Random } from '../../world/random.ts'
import type { Grant, History, Write } from './history.ts'
import type { ClusterRequest, NodeProcess, Outcome } from './node-processes.ts'

/** The content of the network from the beginning. */
export interface Prepared {
  /** The session of an administrator. */
  readonly adminToken: string
  /** Sessions that callers end one by one, with the tokens by which they are used. */
  readonly sessions: readonly { readonly id: string; readonly token: string }[]
  /** Identities whose numbers are counted. */
  readonly counted: readonly string[]
  /** Policies that are switched on and off, each with the session of an identity that sees a service by it alone. */
  readonly policies: readonly { readonly id: string; readonly role: string; readonly token: string }[]
}

const PAUSE_MS = 20
/** How long a right is asked for after its end: longer than a lease. */
const USED_MS = 6_000
const SESSION_ENDERS = 3

export class Callers {
  readonly #nodes: readonly NodeProcess[]
  readonly #prepared: Prepared
  readonly #history: History
  readonly #random: Random
  readonly #until: number

  constructor(nodes: readonly NodeProcess[], prepared: Prepared, history: History, random: Random, until: number) {
    this.#nodes = nodes
    this.#prepared = prepared
    this.#history = history
    this.#random = random
    this.#until = until
  }

  async run(): Promise<void> {
    const { counted, sessions, policies } = this.#prepared
    const left = [...sessions]
    await Promise.all([
      this.#create('a'),
      this.#create('b'),
      ...counted.map((id) => this.#count(id)),
      this.#read(),
      ...Array.from({ length: SESSION_ENDERS }, () => this.#endSessions(left)),
      ...policies.map((policy) => this.#switch(policy)),
    ])
  }

  async #ask(request: ClusterRequest) {
    const node = this.#random.pick(this.#nodes)
    const begun = performance.now()
    const outcome = await node.send(request)
    return { node: node.name, begun, ended: performance.now(), outcome }
  }

  async #write(write: Pick<Write, 'kind' | 'subject' | 'value'>, request: ClusterRequest): Promise<Write['result']> {
    const { outcome, ...interval } = await this.#ask({ ...request, token: this.#prepared.adminToken })
    const result = judge(outcome)
    const id = typeof outcome?.data.id === 'string' ? { id: outcome.data.id } : {}
    this.#history.writes.push({ ...write, ...interval, ...id, result })
    return result
  }

  async #repeat(work: () => Promise<unknown>): Promise<void> {
    while (performance.now() < this.#until) {
      await work()
      await wait(PAUSE_MS)
    }
  }

  async #create(prefix: string): Promise<void> {
    let number = 0
    await this.#repeat(async () => {
      const name = `${prefix}-${++number}`
      const body = { name, type: 'Default', isAdmin: false }
      await this.#write({ kind: 'create', subject: name }, { method: 'POST', path: `${MANAGEMENT}/identities`, body })
    })
  }

  async #count(id: string): Promise<void> {
    let value = 0
    await this.#repeat(async () => {
      value += 1
      const body = { tags: { number: value } }
      const path = `${MANAGEMENT}/identities/${id}`
      await this.#write({ kind: 'count', subject: id, value }, { method: 'PATCH', path, body })
    })
  }

  async #read(): Promise<void> {
    const { adminToken: token, counted } = this.#prepared
    await this.#repeat(async () => {
      const subject = this.#random.pick(counted)
      const path = `${MANAGEMENT}/identities/${subject}`
      const { outcome, ...interval } = await this.#ask({ method: 'GET', path, token })
      if (outcome?.status !== 200) return
      const { number = 0 } = outcome.data.tags as { number?: number }
      this.#history.reads.push({ ...interval, subject, value: number })
    })
  }

  async #endSessions(left: Prepared['sessions'][number][]): Promise<void> {
    await this.#repeat(async () => {
      const session = left.pop()
      if (!session) return
      const path = `${MANAGEMENT}/api-sessions/${session.id}`
      const subject = session.id
      while (performance.now() < this.#until) {
        const result = await this.#write({ kind: 'end session', subject }, { method: 'DELETE', path })
        if (result === 'acknowledged') break
      }
      const usedUntil = performance.now() + USED_MS
      while (performance.now() < Math.min(usedUntil, this.#until))
        await this.#use({ kind: 'session', subject }, session.token, () => true)
    })
  }

  async #switch({ id, role, token }: Prepared['policies'][number]): Promise<void> {
    let value = 1
    await this.#repeat(async () => {
      value = 1 - value
      const body = { identityRoles: [value === 1 ? role : '#nothing'] }
      const path = `${MANAGEMENT}/service-policies/${id}`
      await this.#write({ kind: 'set policy', subject: id, value }, { method: 'PATCH', path, body })
      const usedUntil = performance.now() + this.#random.below(USED_MS)
      while (performance.now() < Math.min(usedUntil, this.#until))
        await this.#use({ kind: 'policy', subject: id }, token, (data) => (data as unknown as unknown[]).length > 0)
    })
  }

  /** Lists the services of a session. */
  async #use(
    grant: Pick<Grant, 'kind' | 'subject'>,
    token: string,
    isGranted: (data: Readonly<Record<string, unknown>>) => boolean,
  ): Promise<void> {
    const { outcome, ...interval } = await this.#ask({ method: 'GET', path: `${CLIENT}/services`, token })
    if (outcome) {
      const hasRight = outcome.status === 200 && isGranted(outcome.data)
      this.#history.grants.push({ ...grant, ...interval, isGranted: hasRight })
    }
    await wait(PAUSE_MS)
  }
}

/** A fault of a server says nothing of whether the change was made, unless it is that the server has no storage for it. */
function judge(outcome: Outcome): Write['result'] {
  if (outcome?.code === 'STORAGE_UNAVAILABLE') return 'refused'
  if (!outcome || outcome.status >= 500) return 'unknown'
  return outcome.status < 300 ? 'acknowledged' : 'refused'
}
