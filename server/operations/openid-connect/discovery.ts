// The documents by which clients and other services know the provider.
import { describeKeys, describeProvider } from '../../../src/authentication/openid-connect/discovery.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { rawResponse } from '../../api/responses.ts'
import { COMMON, requireIssuer } from './forms.ts'

const JSON_RETURNS = { kind: 'raw', contentType: 'application/json' } as const

export const discoveryOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'showOpenIdConfiguration',
    atRoot: ['/oidc/.well-known/openid-configuration'],
    method: 'GET',
    summary: 'The endpoints of the provider (OpenID Connect Discovery).',
    access: { public: 'clients read it before they sign in' },
    returns: JSON_RETURNS,
    hasOneForm: true,
    run: (call) => rawResponse('application/json', JSON.stringify(describeProvider(requireIssuer(call)))),
  }),
  defineOperation({
    ...COMMON,
    id: 'showOpenIdKeys',
    atRoot: ['/oidc/keys'],
    method: 'GET',
    summary: 'The public keys by which tokens are verified (RFC 7517).',
    access: { public: 'the keys are public' },
    returns: JSON_RETURNS,
    hasOneForm: true,
    async run(call) {
      requireIssuer(call)
      const { contexts, tokenKeys } = call.controller
      await tokenKeys.ensureKey(contexts.create({ kind: 'system' }))
      return rawResponse('application/json', JSON.stringify(describeKeys(tokenKeys.listCertificates())))
    },
  }),
]
