// The public contract as schemas: what is really sent is held to them, whatever our own documents say of it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { parseTime } from '../../src/foundation/clock.ts'
import { isUuid } from '../../src/foundation/ids.ts'
import type { Api, Dialect } from '../../src/settings/listener-settings.ts'

const CONTRACT = 'https://contract.test/'

interface ContractOperation {
  readonly method: string
  readonly path: string
  readonly responses: Readonly<Record<string, unknown>>
}

/** The APIs that the contract describes. */
export type ContractApi = Exclude<Api, 'fabric'>

type Contract = Readonly<Record<ContractApi, { readonly operations: readonly ContractOperation[] }>> & {
  readonly records: Readonly<Record<string, unknown>>
}

const contract = JSON.parse(readFileSync(join(import.meta.dirname, '../fixtures/contract.json'), 'utf8')) as Contract

// Most validators are used a few times only: to optimize them takes longer than they run.
const compiler = new Ajv({ allErrors: true, strict: false, ownProperties: true, code: { optimize: false } })
compiler.addFormat('date-time', (text: string) => parseTime(text) !== undefined)
compiler.addFormat('uuid', isUuid)
// Links are relative to the base path of the API, which the contract calls URIs as well.
for (const format of ['int32', 'int64', 'byte', 'url', 'uri']) compiler.addFormat(format, true)
compiler.addSchema({ $id: CONTRACT, records: toSchema(contract.records) as object })
const validators = new Map<string, ValidateFunction>()

interface Difference {
  readonly operations: RegExp
  readonly differences: RegExp
  /** The only dialect that has it. */
  readonly dialect?: Dialect
  readonly because: string
}

/** Responses that contradict the contract, and why. */
const DIFFERENCES: readonly Difference[] = [
  {
    operations: /^GET \/specs\/\{id\}\/spec$/,
    differences: /^ must have required property '(meta|data)'$/,
    because: 'C6: the body is the specification document itself',
  },
  {
    operations: /^(POST \/authenticate|GET \/current-api-session|GET \/api-sessions(\/\{id\})?)$/,
    differences: /^data(\[\])? must have required property 'cachedUpdatedAt'$/,
    because: 'an error of the contract, which requires a member that it does not define',
  },
  {
    operations: /^(POST \/authenticate|GET \/current-api-session|GET \/api-sessions(\/\{id\})?)$/,
    differences: /^data(\[\])?\.authQueries\[\]\.provider must be equal to one of the allowed values: ziti, url$/,
    because: 'API session: the built-in provider value is written `native`',
  },
  {
    operations: /^(GET|DELETE) \/api-sessions(\/\{id\})?$/,
    differences: /^data(\[\])?\.token must be string$/,
    because: 'the token of a session is shown to its owner only',
  },
  {
    operations: /^POST \/authenticate\/mfa$/,
    differences: /^ must have required property 'data'$/,
    because: 'an error of the contract, which gives the refusal of a code the shape of a success',
  },
  {
    operations: /^GET .*\/enrollments(\/\{id\})?$/,
    differences: /^data(\[\])? must have required property 'details'$/,
    because: 'an error of the contract, which requires a member that it does not define',
  },
  {
    operations: /^GET .*\/enrollments(\/\{id\})?$/,
    differences: /^data(\[\])?\.username must be string$/,
    because: 'Enrollment: only enrollments by password have a username',
  },
  {
    operations: /^GET .*\/(edge-|transit-)?routers(\/\{id\})?$/,
    differences:
      /^data(\[\])?(\.fingerprint must be string| must have required property '(arch|buildDate|os|revision|version)')$/,
    because:
      'a router that has not enrolled has no certificate, and one that never connected has not said what it runs',
  },
  {
    operations: /^GET \/edge-routers\/\{id\}\/service-edge-router-policies$/,
    differences: /^data\[\] must have required property '(type|(identity|postureCheck)Roles(Display)?)'$/,
    because: 'an error of the contract, which shows service policies there',
  },
  {
    operations: /^GET \/external-jwt-signers(\/\{id\})?$/,
    differences: /^data(\[\])?\.(audience|clientId|externalAuthUrl|fingerprint|kid) must be string$/,
    because: 'External JWT signer: each of them is a string or null',
  },
  {
    operations: /^GET \/config-types(\/\{id\})?$/,
    differences: /^data(\[\])?\.schema must be object$/,
    because: 'a config type may have no schema',
  },
  {
    operations: /^GET \/database\/data-integrity-results$/,
    differences: /^data\.(error|startTime|endTime) must be string$/,
    because: 'a run that has not begun, not ended or not failed has no time and no error',
  },
  {
    operations: /^GET \/identities\/\{id\}\/posture-data$/,
    differences: /^data(\.[\w-]+)+ must be (string|array|boolean)$/,
    because: 'a device that has reported nothing has no time of a report',
  },
]

const EMPTY_SETS: readonly Difference[] = [
  {
    operations: /^(?!.*\/posture-checks)/,
    differences:
      /^data(\[\])?\.((roleAttributes|configs|identityRoles|serviceRoles|edgeRouterRoles|postureCheckRoles|scopes|edgeRouters|commonRouters|recoveryCodes|results)|(authQueries\[\]\.scopes)|postureQueries\[\]\.postureQueries\[\]\.processes) must be array$/,
    dialect: 'openziti',
    because: 'conventions: OpenZiti sends null for these sets while they are empty, and its clients compare',
  },
  {
    operations: /^POST \/authenticate$/,
    differences: /^data\.authQueries\[\]\.scopes must be array$/,
    because: 'the same, where the body of a sign-in says which client it is',
  },
]

/** Converts a shape, in which `@name` in place of a value refers to a record of the contract. */
function toSchema(shape: unknown): unknown {
  if (typeof shape === 'string' && shape.startsWith('@')) return { $ref: `${CONTRACT}#/records/${shape.slice(1)}` }
  if (Array.isArray(shape)) return shape.map(toSchema)
  if (typeof shape !== 'object' || shape === null) return shape
  const { discriminator: _, allOf, nullable, ...others } = shape as Record<string, unknown>
  // One list of the contract has no type for its items.
  if (others.items === null) delete others.items
  const schema = Object.fromEntries(Object.entries(others).map(([key, value]) => [key, toSchema(value)]))
  // The documents say `object` for a value of any type.
  if ((others.additionalProperties as { type?: unknown } | undefined)?.type === 'object')
    schema.additionalProperties = true
  if (!allOf) return nullable === undefined ? schema : { ...schema, nullable }
  const whole = { ...schema, allOf: toSchema(allOf) }
  return nullable === true ? { anyOf: [{ type: 'null' }, whole] } : whole
}

/** How a response contradicts the contract: one line for each member that does, without the numbers of list entries. */
export function contractDifferences(
  api: Api,
  { method, path, status, dialect }: { method: string; path: string; status: number; dialect: Dialect },
  body: unknown,
): string[] {
  if (api === 'fabric') return []
  const described = contract[api].operations.find((each) => each.method === method && each.path === path)
  const response = described?.responses[status]
  if (!response) return []
  const key = `${api} ${method} ${path} ${status}`
  let check = validators.get(key)
  if (!check) {
    check = compiler.compile(toSchema(response) as object)
    validators.set(key, check)
  }
  if (check(body)) return []
  const matches = new Set((check.errors ?? []).map(describe))
  return [...matches].filter((difference) => !isKnown(`${method} ${path}`, difference, dialect))
}

function isKnown(operation: string, difference: string, spoken: Dialect): boolean {
  return [...DIFFERENCES, ...EMPTY_SETS].some(
    ({ operations, differences, dialect = spoken }) =>
      dialect === spoken && operations.test(operation) && differences.test(difference),
  )
}

function describe({ instancePath, message, params }: ErrorObject): string {
  const path = instancePath
    .slice(1)
    .replaceAll(/\/\d+(?=\/|$)/g, '[]')
    .replaceAll('/', '.')
  const values = 'allowedValues' in params ? `: ${(params.allowedValues as unknown[]).join(', ')}` : ''
  return `${path} ${message}${values}`
}
