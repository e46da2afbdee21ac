// The config types of tunnelers, as the forms of OpenZiti's console fill them in.
import { describe, expect, it } from 'vitest'
import { tunnelerConfigTypes } from '../../src/definitions/resources/config-type-schemas.ts'
import { ConfigSchemas } from '../../src/definitions/schema/config-schemas.ts'
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'

const host = { protocol: 'tcp', address: 'localhost', port: 80 }
const required: Record<string, Record<string, unknown>> = {
  'ziti-tunneler-client.v1': { hostname: 'a.example', port: 80 },
  'ziti-tunneler-server.v1': { hostname: 'localhost', port: 80 },
  'intercept.v1': { protocols: ['tcp'], addresses: ['a.example'], portRanges: [{ low: 80, high: 80 }] },
  'host.v1': host,
  'host.v2': { terminators: [host] },
}

/** The console sends an empty list for a property with `type: array` that was left empty, and leaves out other properties. */
function leaveOthersEmpty({ properties = {} }: JsonSchema, data: Record<string, unknown>): Record<string, unknown> {
  const lists = Object.keys(properties).filter((name) => properties[name]?.type === 'array')
  return { ...Object.fromEntries(lists.map((name) => [name, []])), ...data }
}

describe.each(tunnelerConfigTypes)('the config type $name', ({ name, schema }) => {
  it('takes what the console sends if only the required fields were filled in', () => {
    const data = leaveOthersEmpty(schema, required[name] ?? {})

    expect(() => new ConfigSchemas().assertMatches(JSON.stringify(schema), data)).not.toThrow()
  })
})

describe('a list of a tunneler that must not be empty', () => {
  it('is refused if it is empty', () => {
    const schema = tunnelerConfigTypes.find(({ name }) => name === 'intercept.v1')?.schema
    const data = { ...required['intercept.v1'], allowedSourceAddresses: [] }

    expect(() => new ConfigSchemas().assertMatches(JSON.stringify(schema), data)).toThrow()
  })
})
