// The OpenAPI documents as YAML, for clients whose `Accept` header prefers it.
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { toYamlDocument } from '../../server/openapi/yaml-documents.ts'
import { CLIENT, MANAGEMENT, tlsTransport } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()

const PATH = `${CLIENT}/specs/edge-client/spec`

const get = (accept: string | undefined, path = PATH) =>
  world.send({ method: 'GET', path, ...(accept === undefined ? {} : { headers: { accept } }) })

describe('the document of an API', () => {
  it.each(['edge-client', 'edge-management', 'fabric'])('%s is the same in YAML as in JSON', async (spec) => {
    const path = `${MANAGEMENT}/specs/${spec}/spec`
    const json = await get('application/json', path)

    const yaml = await get('text/yaml', path)

    expect([yaml.status, yaml.headers['content-type']]).toEqual([200, 'text/yaml'])
    // Tools that read YAML 1.1 take `on` and `yes` for truth values.
    for (const version of ['1.1', '1.2'] as const) expect(parse(yaml.text, { version })).toEqual(json.body)
    expect(yaml.text).toMatch(/^ {2}"?\/[\w-]+"?:$/m)
  })

  it('is the same over a connection, which the direct route serves', async () => {
    const { url, rootPem } = await world.listen()
    const transport = tlsTransport(url, rootPem)

    const response = await transport.send({ method: 'GET', path: PATH, headers: { accept: 'text/yaml' } })
    await transport.close()

    expect(response.headers['content-type']).toBe('text/yaml')
    expect(response.text).toBe((await get('text/yaml')).text)
  })

  it.each([
    [undefined, 'application/json'],
    ['*/*', 'application/json'],
    ['application/json, text/yaml', 'application/json'],
    ['text/yaml, */*;q=0.5', 'text/yaml'],
    ['text/*', 'text/yaml'],
    ['TEXT/YAML', 'text/yaml'],
    ['application/json;q=0.2, text/yaml;q=0.9', 'text/yaml'],
    ['text/yaml;q=0, */*', 'application/json'],
    ['application/json;q=0, */*', 'text/yaml'],
  ])('for Accept %s is %s', async (accept, contentType) => {
    const { status, headers } = await get(accept)

    expect([status, headers['content-type']]).toEqual([200, contentType])
    expect(headers.vary).toMatch(/\bAccept\b(?!-)/)
  })

  it('is refused to a client that accepts neither form', async () => {
    const { status, body } = await get('text/html')

    expect([status, body.error.cause]).toEqual([
      406,
      {
        field: 'Accept',
        reason: 'leaves out application/json and text/yaml, and there is nothing else',
        value: 'text/html',
      },
    ])
  })

  it('has a tag of its own in each form', async () => {
    const [json, yaml] = [await get('application/json'), await get('text/yaml')]
    const again = await world.send({
      method: 'GET',
      path: PATH,
      headers: { accept: 'text/yaml', 'if-none-match': yaml.headers.etag as string },
    })

    expect(json.headers.etag).not.toBe(yaml.headers.etag)
    expect(again.status).toBe(304)
  })
})

it('the event loop turns for each operation and each schema that is rendered', async () => {
  const members = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`/path-${at}`, { get: {}, put: {} }]))
  const json = Buffer.from(JSON.stringify({ paths: members, components: { schemas: members } }))
  let turns = 0
  const count = () => {
    turns += 1
    pending = setImmediate(count)
  }
  let pending = setImmediate(count)

  const yaml = await toYamlDocument(json)
  clearImmediate(pending)

  expect(parse(yaml.toString())).toEqual(JSON.parse(json.toString()))
  expect(turns).toBeGreaterThanOrEqual(300)
  expect(await toYamlDocument(json)).toBe(yaml)
})
