// An error response of the controller, as commands throw and explain it.
import type { Reply } from '../../src/client/transport.ts'

/** An error response of the controller. */
export class RequestError extends Error {
  readonly target: string
  readonly status: number
  readonly code: string
  readonly causeCode: string | undefined
  readonly field: string | undefined
  readonly reason: string | undefined
  /** The invalid value, as text; for a record in use, the ids of the records that use it. */
  readonly value: string | undefined
  readonly requestId: string | undefined
  /** The other problems of the request. */
  readonly others: readonly InvalidMember[]

  constructor(target: string, reply: Reply) {
    const { error } = (parseOptionalJson(reply.text) ?? {}) as { error?: ErrorBody }
    super(error?.message ?? `the response with status ${reply.status} is not from a controller`)
    this.name = 'RequestError'
    this.target = target
    this.status = reply.status
    this.code = error?.code ?? `HTTP_${reply.status}`
    this.causeCode = error?.cause?.code
    this.field = error?.cause?.field
    this.reason = error?.cause?.reason ?? error?.cause?.message
    this.value = error?.cause?.value
    this.requestId = error?.requestId
    this.others = error?.cause?.others ?? []
  }

  /** Whether a value that must be unique belongs to another record. */
  get isDuplicate(): boolean {
    return this.field !== undefined && this.reason === DUPLICATE_REASON
  }

  /** The problem, as far as the response explains it. */
  get explanation(): string {
    const { code, message, field, reason, value } = this
    if (!reason) return message
    if (!field) return `${message} (${reason})`
    // The field is one of the records that use this one, which the reason names.
    if (code === 'CAN_NOT_DELETE_REFERENCED_ENTITY') return reason
    return this.isDuplicate && value ? `${field} "${value}" ${reason}` : `${field} ${reason}`
  }
}

export const DUPLICATE_REASON = 'is taken'

/** A member of a request that breaks a rule. */
export interface InvalidMember {
  readonly field: string
  readonly reason: string
  readonly value: string
}

interface ErrorBody {
  readonly code: string
  readonly message: string
  readonly requestId?: string
  readonly cause?: {
    readonly code?: string
    readonly field?: string
    readonly reason?: string
    readonly message?: string
    readonly value?: string
    readonly others?: readonly InvalidMember[]
  }
}

export function parseOptionalJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
