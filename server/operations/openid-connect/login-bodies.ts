// The bodies of sign-ins by OpenID Connect: JSON, or a form whose names stand for the same members.
import { anyUsernameLength, passwordLength } from '../../../src/definitions/resources/authenticators.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { type BodyReader, readFieldsBody } from '../../api/operation.ts'
import { FORM_TYPE } from '../../requests/body-parsers.ts'
import { clientInfoFields } from '../both-apis/authentication.ts'
import { requireOnce } from './forms.ts'

// It contains the request.
const MAX_ID_LENGTH = 8_192
const MAX_CODE_LENGTH = 64
// A request for a certificate with a key of 4,096 bits has 1,800.
const MAX_CSR_LENGTH = 4_096

export interface LoginBody {
  readonly id?: string
  readonly username?: string
  readonly password?: string
  readonly configTypes?: readonly string[]
  readonly envInfo?: Record<string, unknown>
  readonly sdkInfo?: Record<string, unknown>
  readonly csrPem?: string
}

export interface CodeBody {
  readonly id?: string
  readonly code?: string
}

/** The names of forms for members of objects: `envOs` for `envInfo.os`. */
const INFO_PREFIXES = { env: 'envInfo', sdk: 'sdkInfo' } as const

/** Reads JSON, or the form of the same members. */
function readEither<B>(reader: BodyReader<B>): BodyReader<B> {
  return {
    ...reader,
    isRequired: false,
    contentTypes: ['application/json', FORM_TYPE],
    read: (sent, tolerance) => reader.read(sent instanceof URLSearchParams ? toMembers(sent) : sent, tolerance),
  }
}

function toMembers(form: URLSearchParams): Record<string, unknown> {
  const members: Record<string, unknown> = {}
  for (const [name, value] of requireOnce(form)) {
    if (value === '') continue
    const [, prefix = '', initial = '', rest = ''] = /^(env|sdk)([A-Z])(\w+)$/.exec(name) ?? []
    if (name === 'configTypes') members.configTypes = form.getAll(name)
    else if (prefix === '') members[name] = value
    else {
      const group = INFO_PREFIXES[prefix as keyof typeof INFO_PREFIXES]
      members[group] = { ...(members[group] as object | undefined), [initial.toLowerCase() + rest]: value }
    }
  }
  return members
}

const id = f.text({ maxLength: MAX_ID_LENGTH })

export const loginBody = readEither(
  readFieldsBody<LoginBody>(
    {
      id,
      username: f.text(anyUsernameLength),
      password: f.text({ ...passwordLength, secret: true }),
      ...clientInfoFields,
      csrPem: f.text({ maxLength: MAX_CSR_LENGTH }),
    },
    { isRequired: false },
  ),
)

export const codeBody = readEither(
  readFieldsBody<CodeBody>({ id, code: f.text({ maxLength: MAX_CODE_LENGTH, secret: true }) }, { isRequired: false }),
)
