// Collects the mistakes of a network file, so that one request reports many.
import { ControllerError, errors, type FieldCause } from '../../foundation/errors.ts'

/** More would not be read. */
const MAX_MISTAKES = 100

/** The mistakes of one file. */
export class FileMistakes {
  readonly #causes: FieldCause[] = []
  #first: ControllerError | undefined

  /** @throws the error itself if it is not about a member of the file; all mistakes if there are as many as are reported */
  add(error: unknown): void {
    const cause = getFieldCause(error)
    if (!cause || cause.others) throw error
    if (this.has(cause.field)) return
    this.#first ??= error as ControllerError
    this.#causes.push(cause)
    if (this.#causes.length >= MAX_MISTAKES) this.throwIfAny()
  }

  get isEmpty(): boolean {
    return this.#causes.length === 0
  }

  /** Whether a mistake at a place is reported already. */
  has(field: string): boolean {
    return this.#causes.some((cause) => cause.field === field)
  }

  /** @throws the first mistake, with the others in its cause */
  throwIfAny(): void {
    const [first, ...others] = this.#causes
    if (!first || !this.#first) return
    if (others.length === 0) throw this.#first
    const raise = this.#first.code === 'COULD_NOT_PARSE_BODY' ? errors.COULD_NOT_PARSE_BODY : errors.COULD_NOT_VALIDATE
    throw raise({ ...first, others })
  }
}

/** The rule that a rejected member of the file breaks; undefined for any other error. */
export function getFieldCause(error: unknown): FieldCause | undefined {
  if (!(error instanceof ControllerError) || error.status !== 400) return undefined
  return error.publicCause && 'field' in error.publicCause ? error.publicCause : undefined
}
