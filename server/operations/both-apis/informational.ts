// Public information about this controller: its version, its documents, and the authorities that its clients trust.
import { findByCertificate } from '../../../src/authentication/credentials/credentials.ts'
import type { Controller } from '../../../src/controller/controller.ts'
import {
  anyObject,
  links,
  listOf,
  objectOf,
  requiredObject,
  text,
  time,
} from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import { version } from '../../../src/foundation/version.ts'
import { computeFingerprint256, type EncodedCertificate } from '../../../src/pki/certificates.ts'
import { encodeCertificateStore } from '../../../src/pki/pkcs7.ts'
import { getAdvertisedAddress } from '../../../src/settings/addresses.ts'
import type { Api } from '../../../src/settings/listener-settings.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'
import { BASE_PATHS } from '../../api/mount-points.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { dataResponse, type Response, rawResponse } from '../../api/responses.ts'
import { respondWithDocument } from '../../openapi/documents.ts'
import { toYamlDocument } from '../../openapi/yaml-documents.ts'

const BOTH = ['client', 'management'] as const
const INFORMATION = { public: 'it tells nothing about the network' } as const

// Every capability; `/version` lists those that are enabled. Clients generated from the contract know the first two alone.
const NAMED_CAPABILITIES = ['OIDC_AUTH', 'HA_CONTROLLER'] as const
const CAPABILITIES = [...NAMED_CAPABILITIES, 'OIDC_AUTH_WITH_CSR'] as const

/** The capabilities whose names not every client knows, so that an operator enables them. */
const listOptionalCapabilities = ({ config }: Controller) =>
  config['oidc.announceCertificateRequests'] ? (['OIDC_AUTH_WITH_CSR'] as const) : []

/** The documents that describe the APIs, by the names that clients know. */
const SPECS = { 'edge-client': 'client', 'edge-management': 'management', fabric: 'fabric' } as const
type SpecId = keyof typeof SPECS
const YAML_TYPE = 'text/yaml'
const SPEC_IDS = Object.keys(SPECS) as SpecId[]

const specShape = requiredObject({
  _links: links,
  id: text,
  createdAt: time,
  updatedAt: time,
  tags: anyObject,
  name: text,
})
const versionShape = objectOf({
  version: text,
  revision: text,
  buildDate: text,
  runtimeVersion: text,
  capabilities: listOf(text),
  apiVersions: anyObject,
})

const makeVersionOperation = (id: string, path: string) =>
  defineOperation({
    id,
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path,
    atRoot: [path],
    summary: 'Shows the version of the controller and the paths of its APIs.',
    access: INFORMATION,
    grantsNothing: INFORMATION.public,
    returns: { kind: 'data', schema: versionShape },
    run: ({ controller, isCarried }) =>
      describeVersion(controller, controller.routers.oidc.isActive && isCarried('oidc')),
  })

interface VersionResponses {
  readonly plain: Response
  /** With sign-in by OpenID Connect. */
  readonly withOidc: Response
}

// By the identity of the controller: each response is the same as long as it runs. Clients ask for it all the time; composed for each
// request it costs 1.29 times as much, 1.68 times a bare server, where 1.7 is the bound.
const versionResponses = new WeakMap<Controller, VersionResponses>()

function describeVersion(controller: Controller, hasOidc: boolean): Response {
  let responses = versionResponses.get(controller)
  if (!responses) {
    responses = composeVersionResponses(controller)
    versionResponses.set(controller, responses)
  }
  return hasOidc ? responses.withOidc : responses.plain
}

function composeVersionResponses(controller: Controller): VersionResponses {
  const { config } = controller
  const base = `https://${getAdvertisedAddress(config)}`
  const apiVersions = listApiVersions(base)
  // Clients that see it sign in by OpenID Connect, so that it comes with that alone.
  const ofCluster = controller.cluster ? (['HA_CONTROLLER'] as const) : []
  const optional = listOptionalCapabilities(controller)
  const capabilities: readonly (typeof CAPABILITIES)[number][] = ['OIDC_AUTH', ...ofCluster, ...optional]
  const oidc = { v1: { apiBaseUrls: [`${base}/oidc`], path: '/oidc', version: 'v1' } }
  return {
    plain: dataResponse({ ...version, capabilities: [], apiVersions }),
    withOidc: dataResponse({ ...version, capabilities, apiVersions: { ...apiVersions, 'edge-oidc': oidc } }),
  }
}

function listApiVersions(base: string) {
  const describeApi = (path: string) => ({ v1: { apiBaseUrls: [base + path], path, version: 'v1' } })
  return {
    edge: describeApi(BASE_PATHS.client),
    'edge-client': describeApi(BASE_PATHS.client),
    'edge-management': describeApi(BASE_PATHS.management),
    'health-checks': describeApi('/health-checks/v1'),
  }
}

function describeSpec(id: string, { startedAt }: Controller) {
  const at = toIsoTime(startedAt)
  const links = { self: { href: `./specs/${id}` }, spec: { href: `./specs/${id}/spec` } }
  return { _links: links, createdAt: at, id, tags: {}, updatedAt: at, name: id }
}

function requireSpecId(id: string | undefined): SpecId {
  const document = SPEC_IDS.find((spec) => spec === id)
  if (!document) throw notFoundError('API document', id ?? '')
  return document
}

/** While the root is being replaced: stores who fetches the bundle, known by API session or by client certificate. */
async function recordBundleFetch({ controller, context, peer }: Call): Promise<void> {
  const { authority, certificates: parts, contexts, log } = controller
  if (!authority.previousRoot) return
  try {
    const holderId = await findBundleHolder(context, peer.own)
    if (holderId) await parts.receipts.record(contexts.create({ kind: 'system' }), holderId)
  } catch (error) {
    // The bundle is sent anyway. The client remains listed among those without the new root.
    log.warn({ err: error }, 'it could not be stored who fetched the new root')
  }
}

async function findBundleHolder(
  { caller, db }: Context,
  certificate: EncodedCertificate | undefined,
): Promise<string | undefined> {
  if (caller.kind === 'identity') return caller.identityId
  if (!certificate) return undefined
  const [authenticator] = await findByCertificate(db, computeFingerprint256(certificate))
  return authenticator?.identityId
}

/** @param getDocument the OpenAPI document of an API, as JSON text */
export const makeInformationalOperations = (getDocument: (api: Api) => Promise<Buffer>): readonly AnyOperation[] => [
  makeVersionOperation('listVersion', '/version'),
  makeVersionOperation('listRoot', '/'),
  defineOperation({
    id: 'listEnumeratedCapabilities',
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path: '/enumerated-capabilities',
    summary: 'Lists every capability a controller can have.',
    access: INFORMATION,
    grantsNothing: INFORMATION.public,
    returns: { kind: 'data', schema: { type: 'array', items: { type: 'string', enum: CAPABILITIES } } },
    run: ({ controller }) => dataResponse([...NAMED_CAPABILITIES, ...listOptionalCapabilities(controller)]),
  }),
  defineOperation({
    id: 'listProtocols',
    apis: ['client'],
    topic: 'informational',
    method: 'GET',
    path: '/protocols',
    summary: 'Shows the protocols and addresses by which clients reach the controller.',
    access: INFORMATION,
    grantsNothing: INFORMATION.public,
    returns: { kind: 'data', schema: { type: 'object' } },
    run: ({ controller }) => dataResponse({ https: { address: getAdvertisedAddress(controller.config) } }),
  }),
  defineOperation({
    id: 'listSpecs',
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path: '/specs',
    summary: 'Lists the documents that describe the APIs.',
    access: INFORMATION,
    grantsNothing: INFORMATION.public,
    returns: { kind: 'data', schema: listOf(specShape) },
    run: ({ controller }) => dataResponse(SPEC_IDS.map((id) => describeSpec(id, controller))),
  }),
  defineOperation({
    id: 'detailSpec',
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path: '/specs/:id',
    summary: 'Shows one document that describes an API.',
    access: INFORMATION,
    grantsNothing: INFORMATION.public,
    returns: { kind: 'data', schema: specShape },
    run: ({ controller, params }) => dataResponse(describeSpec(requireSpecId(params.id), controller)),
  }),
  defineOperation({
    id: 'detailSpecBody',
    apis: BOTH,
    topic: 'informational',
    method: 'GET',
    path: '/specs/:id/spec',
    summary: 'The OpenAPI document of an API.',
    access: INFORMATION,
    grantsNothing: INFORMATION.public,
    returns: { kind: 'raw', contentType: 'application/json', otherContentTypes: [YAML_TYPE], schema: anyObject },
    async run({ params, headers, contentType }) {
      const json = await getDocument(SPECS[requireSpecId(params.id)])
      const body = contentType === YAML_TYPE ? await toYamlDocument(json) : json
      return respondWithDocument(contentType, body, headers['accept-encoding'] as string | undefined)
    },
  }),
  defineOperation({
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
    async run(call) {
      await recordBundleFetch(call)
      return rawResponse('application/pkcs7-mime', encodeCertificateStore(call.controller.authority.bundle), {
        'content-transfer-encoding': 'base64',
      })
    },
  }),
]
