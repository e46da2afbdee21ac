// Every error a caller can see, in one catalogue: a stable code, a status, one public sentence.

/** A problem with one member of a request; `value` is shown to the caller as text. */
export interface FieldCause {
  readonly field: string
  readonly reason: string
  readonly value?: unknown
  /** The other problems, if the request can have many. */
  readonly others?: readonly FieldCause[]
}

/** A reason that is not about one member; `data` is machine-readable detail. */
interface CodeCause {
  readonly code?: string
  readonly message?: string
  readonly data?: unknown
}

export type PublicCause = FieldCause | CodeCause

/** The parts of an error that the caller does not get: `cause` goes to the log, under the request id. */
export interface ErrorExtras {
  readonly cause?: unknown
  /** Seconds after which trying again makes sense; becomes `Retry-After`. */
  readonly retryAfterSeconds?: number
}

/** An error of the catalogue. Anything else that is thrown reaches a caller as `UNHANDLED`. */
export class ControllerError extends Error {
  /** The code, as it is sent. */
  readonly code: string
  readonly status: number
  readonly publicCause: PublicCause | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, publicCause?: PublicCause, extras: ErrorExtras = {}) {
    const [status, sentence, sentCode]: readonly [number, string, string?] = CATALOGUE[code]
    super(sentence, { cause: extras.cause })
    this.name = 'ControllerError'
    this.code = sentCode ?? code
    this.status = status
    this.publicCause = publicCause
    this.retryAfterSeconds = extras.retryAfterSeconds
  }

  /** Whether the same request may succeed shortly: the controller was busy, or could not reach what it needs. */
  get isTemporary(): boolean {
    return this.status === 429 || this.status === 503
  }
}

// Some codes stand for several statuses on the wire; each status has an entry of its own here, and the third member
// names the code that is sent.
const CATALOGUE = {
  // ---- requests ----
  NOT_FOUND: [404, 'There is nothing here by that path or id.'],
  METHOD_NOT_ALLOWED: [405, 'This path does not support that HTTP method.'],
  NOT_SUPPORTED: [400, 'This controller does not offer that; the cause says what it offers.'],
  COULD_NOT_PARSE_BODY: [400, 'The request body could not be understood.'],
  COULD_NOT_VALIDATE: [400, 'The request breaks a rule of this operation; the cause names it.'],
  NOT_ACCEPTABLE: [406, 'The response to this request exists in no form that was asked for.', 'COULD_NOT_VALIDATE'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'The body is of a type that this operation does not take.', 'COULD_NOT_VALIDATE'],
  INVALID_FILTER: [400, 'The filter could not be understood; the cause says where.'],
  INVALID_SORT_IDENTIFIER: [400, 'The requested order names something this list cannot be sorted by.'],
  UNSUPPORTED_MEDIA: [415, 'The response to this request can only be JSON.'],
  PRECONDITION_FAILED: [412, 'The file is not in the state that the request requires.', 'COULD_NOT_VALIDATE'],
  REQUEST_ENTITY_TOO_LARGE: [413, 'The request body is larger than this controller accepts.'],
  REQUEST_HEADER_FIELDS_TOO_LARGE: [431, 'The request headers are larger than this controller accepts.'],
  REQUEST_TIMEOUT: [408, 'The request did not arrive in time.'],
  // ---- entities ----
  REFERENCED_ENTITY_NOT_FOUND: [400, 'A value in the request refers to something that does not exist or does not fit.'],
  ENTITY_CAN_NOT_BE_DELETED: [400, 'This record belongs to the system and cannot be deleted.'],
  ENTITY_CAN_NOT_BE_UPDATED: [400, 'This record belongs to the system and cannot be changed.'],
  LAST_ADMINISTRATOR: [409, 'After that no administrator could sign in.'],
  CAN_NOT_DELETE_REFERENCED_ENTITY: [409, 'This record is in use; the cause names what uses it.'],
  NETWORK_CHANGED: [409, 'The network is not as it was when the plan was made; plan again.'],
  CONTROLLER_ALONE: [409, 'This controller is alone: it is none of several.'],
  SERVER_NOT_RUNNING_IN_HA_MODE: [400, 'This controller is not a member of a cluster of OpenZiti.'],
  CONTROLLER_RUNS: [409, 'This controller runs; stop it first.'],
  // ---- reaching services ----
  INVALID_POSTURE: [
    409,
    'The machine does not show what the policies for this service ask of it; the cause says what.',
  ],
  NO_EDGE_ROUTERS_AVAILABLE: [400, 'There is no edge router that both the identity and the service may use.'],
  // ---- signing in ----
  UNAUTHORIZED: [401, 'Not allowed: sign in first, or with an identity that holds this right.'],
  NOT_EXTENDABLE: [403, 'Only certificates can be extended.', 'FORBIDDEN'],
  FORBIDDEN: [403, 'This identity does not hold the right to do that.'],
  INVALID_AUTH: [401, 'Signing in failed.'],
  MFA_INVALID_TOKEN: [401, 'The code of the second factor is missing or wrong, or was used before.'],
  INVALID_TOTP_CODE: [400, 'The code of the second factor is wrong, or was used before.', 'INVALID TOTP CODE'],
  INVALID_BACKING_TOKEN_TYPE: [400, 'Only sessions by OpenID Connect have such tokens.'],
  MFA_EXISTS: [409, 'The identity has an MFA enrollment already.'],
  MFA_NOT_ENROLLED: [409, 'The identity has no verified MFA enrollment.'],
  USERNAME_TAKEN: [409, 'Another identity signs in by this username.', 'COULD_NOT_VALIDATE'],
  MAX_AUTHENTICATOR_METHODS_REACHED: [409, 'The identity already has an authenticator of this method.'],
  CAN_NOT_UPDATE_AUTHENTICATOR: [409, 'An authenticator of this method cannot be changed like that.'],
  // ---- enrollment and certificates ----
  INVALID_ENROLLMENT_TOKEN: [400, 'The enrollment token is not valid, or no longer.'],
  ENROLLMENT_EXPIRED: [400, 'The time to use this enrollment has passed.'],
  INVALID_ENROLL_METHOD: [400, 'This enrollment cannot be completed by that method.'],
  ENROLLMENT_EXISTS: [409, 'The identity already has an outstanding enrollment of this method.'],
  ENROLLMENT_NO_VALID_CAS: [400, 'No certificate authority is registered whose certificates can enroll.'],
  ENROLLMENT_CA_NOT_VALID: [400, 'The certificate authority of this enrollment does not let its certificates enroll.'],
  CERT_FAILED_VALIDATION: [400, 'No certificate authority that lets certificates enroll vouches for this one.'],
  MISSING_CERT_CLAIM: [400, 'The certificate does not contain the external id that its authority requires.'],
  COULD_NOT_PROCESS_CSR: [400, 'The certificate signing request could not be accepted.'],
  MISSING_OR_INVALID_CSR: [400, 'A certificate signing request is missing or cannot be read.'],
  INVALID_CERT_PEM: [400, 'The certificate cannot be read, or there is more than one.'],
  COULD_NOT_PARSE_PEM_BLOCK: [400, 'The certificate is not PEM, or not just one.'],
  CERTIFICATE_FAILED_VALIDATION: [400, 'The certificate does not lead to an authority that is trusted here.'],
  INVALID_CLIENT_CERT: [400, 'This is not the certificate that the extension issued.'],
  CERTIFICATE_IS_NOT_CA: [400, 'The certificate is not that of a certificate authority.'],
  EXPECTED_PEM_CERTIFICATE: [400, 'The PEM block is not a certificate.'],
  COULD_NOT_PARSE_DER_BLOCK: [400, 'The content of the PEM block is not a certificate.'],
  INVALID_COMMON_NAME: [400, 'The common name of the certificate is not the verification token of the authority.'],
  CA_ALREADY_VERIFIED: [409, 'The certificate authority is verified already.'],
  CERT_IN_USE: [409, 'This certificate already belongs to an identity.'],
  ADOPTION_ON_TRIAL: [409, 'The network is on trial: its former controller would not know a new authority.'],
  ROOT_ROTATION_UNDER_WAY: [409, 'The root is being replaced already; that must be finished first.'],
  NO_ROOT_ROTATION: [409, 'The root is not being replaced.'],
  ROOT_BUNDLE_NOT_FETCHED: [409, 'Some identities or routers do not know the new root yet.'],
  ROOT_KEY_MISSING: [409, 'The key of the root is not in the data directory; put it back, and try again.'],
  // ---- capacity ----
  SERVER_TOO_MANY_REQUESTS: [429, 'The controller is busy with requests of this kind; try again shortly.'],
  RATE_LIMITED: [429, 'This was requested too recently, or is still running; try again later.'],
  TIMEOUT: [503, 'The controller could not respond in time; try again shortly.'],
  ROUTERS_ELSEWHERE: [503, 'Another controller has the routers, and this concerns them: send it there.'],
  STORAGE_UNAVAILABLE: [503, 'The controller cannot use its storage right now; its log says why.'],
  OUTCOME_UNKNOWN: [503, 'Nothing tells whether the change was made: look before you repeat it.'],
  UNHANDLED: [500, 'Something went wrong inside the controller; its log knows more under this request id.'],
} as const satisfies Record<string, readonly [status: number, sentence: string, sentCode?: string]>

export type ErrorCode = keyof typeof CATALOGUE

/** All codes with status and sentence, for documents and tests. */
export const errorCatalogue: Readonly<
  Record<ErrorCode, readonly [status: number, sentence: string, sentCode?: string]>
> = CATALOGUE

type Raise = (publicCause?: PublicCause, extras?: ErrorExtras) => ControllerError

/** One function a code: `throw errors.NOT_FOUND({ message: '…' }, { cause })`. */
export const errors = Object.fromEntries(
  (Object.keys(CATALOGUE) as ErrorCode[]).map((code) => [
    code,
    (publicCause?: PublicCause, extras?: ErrorExtras) => new ControllerError(code, publicCause, extras),
  ]),
) as unknown as Readonly<Record<ErrorCode, Raise>>

/** A record of `kind` (singular, as in "config type") that a path named does not exist. */
export function notFoundError(kind: string, id: string): ControllerError {
  return errors.NOT_FOUND({ message: `there is no ${kind} with the id ${clipValue(id)}` })
}

/** One member of a request breaks a rule: 400 `COULD_NOT_VALIDATE` with the field named. */
export function invalidError(field: string, reason: string, value?: unknown): ControllerError {
  return errors.COULD_NOT_VALIDATE({ field, reason, value })
}

/** How an offending value is shown to the caller: always text, never long. */
export function toPrintable(value: unknown): string {
  if (value === undefined || value === null) return ''
  return clipValue(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
}

const MAX_VALUE_LENGTH = 200

function clipValue(text: string): string {
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text
}
