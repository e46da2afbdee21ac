// What anyone may know of this controller: its version, its documents, the authorities it is recognised by.

import { isoTime } from '../../src/clock.ts'
import { advertisedAddress } from '../../src/config.ts'
import type { Controller } from '../../src/controller.ts'
import { notFound } from '../../src/errors.ts'
import { certificateStore } from '../../src/pki/pkcs7.ts'
import { anyObject, links, listOf, objectOf, text, time } from '../../src/schema/json-schema.ts'
import { data, document, raw } from '../answers.ts'
import { BASE_PATHS } from '../mount-points.ts'
import { type AnyOperation, operation } from '../operation.ts'
import { version } from '../version.ts'

const BOTH = ['client', 'management'] as const
const INFORMATION = { public: 'it tells nothing about the network' } as const

// Every capability there is a name for, switched on or not; `/version` lists those that are on.
const CAPABILITIES = ['OIDC_AUTH', 'HA_CONTROLLER'] as const

const SPECS = ['edge-client', 'edge-management'] as const

const specShape = objectOf({ _links: links, id: text, createdAt: time, updatedAt: time, tags: anyObject, name: text })
const versionShape = objectOf({
  version: text,
  revision: text,
  buildDate: text,
  runtimeVersion: text,
  capabilities: listOf(text),
  apiVersions: anyObject,
})

const versionOperation = (id: string, path: string) =>
  operation({
    id,
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path,
    atRoot: [path],
    summary: 'Shows the version of the controller and where its APIs are found.',
    access: INFORMATION,
    returns: { kind: 'data', schema: versionShape },
    run: ({ context }) => data({ ...version, capabilities: [], apiVersions: apiVersions(context.controller) }),
  })

function apiVersions({ config }: Controller) {
  const base = `https://${advertisedAddress(config)}`
  const described = (path: string) => ({ v1: { apiBaseUrls: [base + path], path, version: 'v1' } })
  return {
    edge: described(BASE_PATHS.client),
    'edge-client': described(BASE_PATHS.client),
    'edge-management': described(BASE_PATHS.management),
  }
}

function specRecord(id: string, { startedAt }: Controller) {
  const at = isoTime(startedAt)
  const links = { self: { href: `./specs/${id}` }, spec: { href: `./specs/${id}/spec` } }
  return { _links: links, createdAt: at, id, tags: {}, updatedAt: at, name: id }
}

function specId(id: string | undefined): (typeof SPECS)[number] {
  const found = SPECS.find((spec) => spec === id)
  if (!found) throw notFound('API document', id ?? '')
  return found
}

export const informationalOperations: readonly AnyOperation[] = [
  versionOperation('listVersion', '/version'),
  versionOperation('listRoot', '/'),
  operation({
    id: 'listEnumeratedCapabilities',
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path: '/enumerated-capabilities',
    summary: 'Lists every capability a controller can have.',
    access: INFORMATION,
    returns: { kind: 'data', schema: { type: 'array', items: { type: 'string', enum: CAPABILITIES } } },
    run: () => data(CAPABILITIES),
  }),
  operation({
    id: 'listProtocols',
    apis: ['client'],
    topic: 'informational',
    method: 'GET',
    path: '/protocols',
    summary: 'Shows by which protocols and addresses clients reach the controller.',
    access: INFORMATION,
    returns: { kind: 'data', schema: { type: 'object' } },
    run: ({ context }) => data({ https: { address: advertisedAddress(context.controller.config) } }),
  }),
  operation({
    id: 'listSpecs',
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path: '/specs',
    summary: 'Lists the documents that describe the APIs.',
    access: INFORMATION,
    returns: { kind: 'data', schema: listOf(specShape) },
    run: ({ context }) => data(SPECS.map((id) => specRecord(id, context.controller))),
  }),
  operation({
    id: 'detailSpec',
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path: '/specs/:id',
    summary: 'Shows one document that describes an API.',
    access: INFORMATION,
    returns: { kind: 'data', schema: specShape },
    run: ({ context, params }) => data(specRecord(specId(params.id), context.controller)),
  }),
  operation({
    id: 'detailSpecBody',
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path: '/specs/:id/spec',
    summary: 'The OpenAPI document of an API.',
    access: INFORMATION,
    returns: { kind: 'raw', contentType: 'application/json', schema: anyObject },
    async run({ params }) {
      const api = specId(params.id) === 'edge-client' ? 'client' : 'management'
      // Loaded when it is asked for: it reads the registry of which this file is a part.
      const { openApiBody } = await import('../openapi.ts')
      return document('application/json', openApiBody(api))
    },
  }),
  operation({
    id: 'listWellKnownCas',
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path: '/.well-known/est/cacerts',
    atRoot: ['/.well-known/est/cacerts'],
    summary: "The controller's certificate authorities, as a PKCS#7 store.",
    access: { public: 'an enrolling client must be able to trust the controller before anyone knows it' },
    returns: { kind: 'raw', contentType: 'application/pkcs7-mime' },
    hasOneForm: true,
    run: ({ context }) =>
      raw('application/pkcs7-mime', certificateStore(context.controller.authority.bundle), {
        'content-transfer-encoding': 'base64',
      }),
  }),
]
