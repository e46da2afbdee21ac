// The error of files of the former controller that cannot be adopted.

/** A file of the former controller cannot be read, or holds what cannot be adopted: the problem, and what an operator can do about it. */
export class SourceError extends Error {
  /** For programs. */
  readonly code: string
  readonly remedy: string

  constructor(code: string, message: string, remedy: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'SourceError'
    this.code = code
    this.remedy = remedy
  }
}
