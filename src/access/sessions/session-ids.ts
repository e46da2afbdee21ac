// Finds the session by which a sign-in reaches a service without a statement: clients ask for theirs again with every connection.
import { sessions } from '../../definitions/resources/sessions.ts'
import { createBoundedCache } from '../../foundation/bounded-cache.ts'
import type { PolicyType } from '../../policy/policy-index.ts'
import type { RecordCache } from '../../storage/records/record-cache.ts'

// About 3 MiB.
const MAX_SESSIONS = 10_000

/** The members that together identify a session, and never change, and the form of its token. */
interface SessionKey {
  readonly apiSessionId: string
  readonly serviceId: string
  readonly type: PolicyType | 'Invalid'
  /** Whether its client asked for it when tokens were signed. */
  readonly isSigned: boolean
}

export class SessionIds {
  readonly #ids = createBoundedCache<string>(MAX_SESSIONS)
  readonly #records: Pick<RecordCache, 'get'>

  constructor(records: Pick<RecordCache, 'get'>) {
    this.#records = records
  }

  /** The id of the session, if its record is cached, too: the commit that deletes a session invalidates that. */
  get(key: SessionKey): string | undefined {
    const id = this.#ids.get(toText(key))
    return id !== undefined && this.#records.get(sessions, id) ? id : undefined
  }

  /** @param id of a session that exists */
  set(key: SessionKey, id: string): void {
    this.#ids.set(toText(key), id)
  }
}

function toText({ apiSessionId, serviceId, type, isSigned }: SessionKey): string {
  return `${apiSessionId}/${type}/${isSigned ? 'signed' : 'opaque'}/${serviceId}`
}
