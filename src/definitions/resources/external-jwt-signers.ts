// The issuers of JWTs whose tokens identities sign in with, or send with every request as a second factor.
import { f } from '../schema/fields.ts'
import { listOf, objectOf, text, time, typed } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'

/** A public key of a signer, as its key set (RFC 7517) shows it; members that verification does not need are not stored. */
export interface PublicJwk {
  readonly kid: string
  readonly kty: string
  readonly alg?: string
  readonly crv?: string
  readonly n?: string
  readonly e?: string
  readonly x?: string
  readonly y?: string
}

/** The keys that the endpoint of a signer returned last. */
export interface FetchedKeys {
  readonly keys: readonly PublicJwk[]
  /** Milliseconds since the epoch. */
  readonly fetchedAt: number
}

/** The dates that OpenZiti's clients expect of a signer without a certificate: 0001-01-01T00:00:00Z. */
export const NO_DATE = -62_135_596_800_000

export const externalJwtSigners = defineResource({
  name: 'external-jwt-signer',
  plural: 'external-jwt-signers',
  summary:
    'An issuer of JWTs that the controller trusts, with the key or the endpoint that its tokens are verified by.',
  fields: {
    name: f.name({ acceptsNull: 'patch' }),
    issuer: f.text({
      required: true,
      acceptsNull: 'patch',
      unique: true,
      filter: true,
      mustBeVisible: true,
      summary: 'The claim iss of its tokens, byte for byte.',
    }),
    audience: f.text({
      required: true,
      nullable: true,
      acceptsNull: true,
      blank: null,
      filter: true,
      summary: 'What the claim aud of a token must contain; without it no token is accepted.',
    }),
    enabled: f.bool({
      required: true,
      acceptsNull: 'patch',
      commandDefault: true,
      filter: true,
      summary: 'Whether its tokens are accepted.',
    }),
    certPem: f.text({
      nullable: true,
      acceptsNull: true,
      blank: null,
      filter: true,
      summary: 'The certificate whose key signs the tokens, as PEM; in place of jwksEndpoint.',
    }),
    jwksEndpoint: f.text({
      nullable: true,
      acceptsNull: true,
      format: 'uri',
      summary: 'The URL of the key set (JWKS) whose keys sign the tokens; in place of certPem.',
    }),
    kid: f.text({
      nullable: true,
      acceptsNull: true,
      blank: null,
      unique: true,
      filter: true,
      summary: 'With certPem: the key id in the header of tokens; by default the SHA-1 fingerprint of the certificate.',
    }),
    claimsProperty: f.text({
      acceptsNull: true,
      default: 'sub',
      blank: 'sub',
      filter: true,
      summary: 'The claim that names the identity.',
    }),
    useExternalId: f.bool({
      acceptsNull: true,
      filter: true,
      summary: 'Whether the claim is the externalId of the identity; otherwise it is its id.',
    }),
    targetToken: f.choice(['ACCESS', 'ID'], {
      acceptsNull: true,
      default: 'ACCESS',
      filter: true,
      summary: 'Which of its tokens clients send.',
    }),
    clientId: f.text({
      nullable: true,
      acceptsNull: true,
      blank: null,
      filter: true,
      summary: 'The OpenID client id that clients use.',
    }),
    externalAuthUrl: f.text({
      nullable: true,
      acceptsNull: true,
      blank: null,
      format: 'url',
      summary: 'Where clients get a token.',
    }),
    scopes: f.strings({
      acceptsNull: true,
      compatibleEmpty: 'null',
      summary: 'The OpenID scopes that clients request.',
    }),
    commonName: f.text({ access: 'read', filter: true }),
    fingerprint: f.text({ access: 'read', nullable: true, unique: true, filter: true }),
    notBefore: f.time({ access: 'read', default: NO_DATE, filter: true }),
    notAfter: f.time({ access: 'read', default: NO_DATE, filter: true }),
    // Stored, so that tokens are still verified after a restart while the endpoint does not respond.
    fetchedKeys: f.json(typed<FetchedKeys>({ type: 'object' }), { access: 'internal', nullable: true }),
  },
  computed: {
    keyStatus: {
      ...objectOf({
        keyIds: { ...listOf(text), description: 'The ids of the keys that tokens are verified by.' },
        fetchedAt: { ...time, nullable: true, description: 'When the endpoint returned them last.' },
        failure: { ...text, nullable: true, description: 'Why the endpoint returned none when it was asked last.' },
        failedSince: { ...time, nullable: true },
      }),
      description: 'The keys of the signer, and whether its endpoint responds.',
    },
  },
  columns: ['id', 'name', 'issuer', 'enabled'],
  example: {
    create: {
      name: 'keycloak',
      issuer: 'https://keycloak.example/realms/staff',
      audience: 'controller',
      enabled: true,
      jwksEndpoint: 'https://keycloak.example/realms/staff/protocol/openid-connect/certs',
      useExternalId: true,
    },
    filter: 'enabled = true sort by name',
  },
})
