// The error of files of the former controller that cannot be adopted.

const REMEDY_FOR_RIGHTS =
  'run the command as an account that can read the files; if that is root, chown -R the new data directory to the account of the service afterwards'

/** The error of a file that this account may not read; undefined if `cause` is another failure. @param problem what is not read */
export function toRightsError(problem: string, cause: unknown): SourceError | undefined {
  const { code } = cause as NodeJS.ErrnoException
  if (code !== 'EACCES' && code !== 'EPERM') return undefined
  return new SourceError('FILE_UNUSABLE', `${problem}: permission denied`, REMEDY_FOR_RIGHTS, cause)
}

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
