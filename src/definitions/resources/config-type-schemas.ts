// The config types that OpenZiti's tunnelers understand, as they stand in every new network.
import type { JsonSchema } from '../schema/json-schema.ts'

const port: JsonSchema = { type: 'integer', minimum: 0, maximum: 65535 }
const count: JsonSchema = { type: 'integer', minimum: 0, maximum: 2147483647 }
const nonEmpty: JsonSchema = { type: 'string', minLength: 1 }
const protocol: JsonSchema = { type: 'string', enum: ['tcp', 'udp'] }
// One digit says as much as any number of them, because the pattern may begin anywhere, and takes linear time.
const duration: JsonSchema = { type: 'string', pattern: '[0-9](h|m|s|ms)' }
const onlyTrue: JsonSchema = { type: 'boolean', enum: [true] }

function closedObject(
  properties: Record<string, JsonSchema>,
  required: readonly string[],
  more: JsonSchema = {},
): JsonSchema {
  return { type: 'object', additionalProperties: false, properties, required, ...more }
}

/**
 * A list of at least one item. Its type stands inside `allOf`, as in OpenZiti's schemas: OpenZiti's console sends `[]` for a property
 * with `type: array` that was left empty in a form, and leaves this one out.
 */
function someOf(items: JsonSchema): JsonSchema {
  return { allOf: [{ type: 'array', minItems: 1, uniqueItems: true }, { items }] }
}

const portRange = closedObject({ low: port, high: port }, ['low', 'high'])

const actions: JsonSchema = {
  type: 'array',
  minItems: 1,
  maxItems: 20,
  items: closedObject(
    {
      trigger: { type: 'string', enum: ['fail', 'pass', 'change'] },
      action: { type: 'string', pattern: '(mark (un)?healthy|increase cost [0-9]+|decrease cost [0-9]+|send event)' },
      consecutiveEvents: port,
      duration,
    },
    ['trigger', 'action'],
  ),
}

const portChecks: JsonSchema = {
  type: 'array',
  items: closedObject({ interval: duration, timeout: duration, address: { type: 'string' }, actions }, [
    'interval',
    'timeout',
    'address',
  ]),
}

const httpChecks: JsonSchema = {
  type: 'array',
  items: closedObject(
    {
      interval: duration,
      timeout: duration,
      url: { type: 'string' },
      method: { type: 'string', enum: ['GET', 'POST', 'PUT', 'PATCH'] },
      body: { type: 'string' },
      expectStatus: { type: 'integer', minimum: 100, maximum: 599 },
      expectInBody: { type: 'string' },
      actions,
    },
    ['interval', 'timeout', 'url'],
  ),
}

function translation(longestPrefix: number): JsonSchema {
  return closedObject(
    { from: nonEmpty, to: nonEmpty, prefixLength: { type: 'integer', minimum: 0, maximum: longestPrefix } },
    ['from', 'to', 'prefixLength'],
  )
}

const listenOptions = closedObject(
  {
    connectTimeoutSeconds: { ...count, description: 'Deprecated: connectTimeout says it with a unit.' },
    connectTimeout: duration,
    maxConnections: { type: 'integer', minimum: 1 },
    identity: { type: 'string' },
    bindUsingEdgeIdentity: { type: 'boolean' },
    cost: port,
    precedence: { type: 'string', enum: ['default', 'required', 'failed'] },
  },
  [],
)

/** Requires the list of permitted values if a `forward…` flag is set, and the fixed value otherwise. */
function forwardOr(flag: string, allowed: string, fixed: string): JsonSchema {
  return {
    if: { properties: { [flag]: { const: true } }, required: [flag] },
    // biome-ignore lint/suspicious/noThenProperty: `then` is a keyword of JSON Schema
    then: { required: [allowed] },
    else: { required: [fixed] },
  }
}

const hostProperties: Record<string, JsonSchema> = {
  protocol,
  forwardProtocol: onlyTrue,
  allowedProtocols: someOf(protocol),
  address: nonEmpty,
  forwardAddress: onlyTrue,
  allowedAddresses: someOf(nonEmpty),
  forwardAddressTranslations: someOf({ type: 'object', anyOf: [translation(32), translation(128)] }),
  port,
  forwardPort: onlyTrue,
  allowedPortRanges: someOf(portRange),
  allowedSourceAddresses: someOf(nonEmpty),
  listenOptions,
  proxy: {
    type: 'object',
    properties: { type: { type: 'string', enum: ['http'] }, address: nonEmpty },
    required: ['type', 'address'],
  },
  portChecks,
  httpChecks,
}

const host = closedObject(hostProperties, [], {
  allOf: [
    forwardOr('forwardProtocol', 'allowedProtocols', 'protocol'),
    forwardOr('forwardAddress', 'allowedAddresses', 'address'),
    forwardOr('forwardPort', 'allowedPortRanges', 'port'),
  ],
})

const intercept = closedObject(
  {
    protocols: someOf(protocol),
    addresses: someOf(nonEmpty),
    portRanges: someOf(portRange),
    dialOptions: closedObject({ identity: { type: 'string' }, connectTimeoutSeconds: count }, []),
    sourceIp: { type: 'string' },
    allowedSourceAddresses: someOf(nonEmpty),
  },
  ['protocols', 'addresses', 'portRanges'],
)

const tunnelerClient = closedObject({ hostname: { type: 'string' }, port }, ['hostname', 'port'])

const tunnelerServer = closedObject({ hostname: { type: 'string' }, port, protocol, portChecks, httpChecks }, [
  'hostname',
  'port',
])

/** Ids are those that clients know; names are how the data is keyed. */
export const tunnelerConfigTypes = [
  { id: 'f2dd2df0-9c04-4b84-a91e-71437ac229f1', name: 'ziti-tunneler-client.v1', schema: tunnelerClient },
  { id: 'cea49285-6c07-42cf-9f52-09a9b115c783', name: 'ziti-tunneler-server.v1', schema: tunnelerServer },
  { id: 'g7cIWbcGg', name: 'intercept.v1', schema: intercept },
  { id: 'NH5p4FpGR', name: 'host.v1', schema: host },
  {
    id: 'host.v2',
    name: 'host.v2',
    schema: closedObject({ terminators: { type: 'array', minItems: 1, items: host } }, ['terminators']),
  },
]
