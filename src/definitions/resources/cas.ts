// Certificate authorities that operators bring: devices enroll and sign in with the certificates that they issue.
import { f } from '../schema/fields.ts'
import { INT32 } from '../schema/ranges.ts'
import { defineResource } from './define.ts'

/** The name of an identity that enrolls by itself, if the authority states no format. */
const DEFAULT_IDENTITY_NAME_FORMAT = '[caName]-[commonName]'

// Null stands for the value that takes effect without it.
const claimMember = { required: true, acceptsNull: true } as const

export const cas = defineResource({
  name: 'ca',
  plural: 'cas',
  summary: 'A certificate authority of your own, whose certificates let devices enroll and sign in.',
  fields: {
    name: f.name({ acceptsNull: 'patch' }),
    certPem: f.text({
      required: 'create',
      access: 'create',
      summary: 'The certificate of the authority, as PEM; intermediates of it may follow.',
    }),
    fingerprint: f.text({ access: 'read', filter: true }),
    fingerprint256: f.text({ access: 'internal', unique: true, input: 'certPem' }),
    // The subject of the certificate, in the form in which issuers are looked up.
    subject: f.text({ access: 'internal' }),
    isVerified: f.bool({ access: 'read', filter: true }),
    verificationToken: f.text({ access: 'read', filter: true, format: 'uuid', masked: true }),
    isAuthEnabled: f.bool({
      required: true,
      acceptsNull: 'patch',
      commandDefault: true,
      filter: true,
      summary: 'Whether identities can sign in with certificates of this authority.',
    }),
    isOttCaEnrollmentEnabled: f.bool({
      required: true,
      acceptsNull: 'patch',
      commandDefault: true,
      filter: true,
      summary: 'Whether identities can enroll with a one-time token and a certificate of this authority.',
    }),
    isAutoCaEnrollmentEnabled: f.bool({
      required: true,
      acceptsNull: 'patch',
      commandDefault: false,
      filter: true,
      summary: 'Whether every certificate of this authority can make an identity for itself.',
    }),
    identityRoles: f.futureRoleAttributes({
      compatibleEmpty: 'null',
      required: true,
      commandDefault: [],
      summary: 'The role attributes of identities that enroll by themselves.',
    }),
    identityNameFormat: f.text({
      required: 'replace',
      acceptsNull: 'patch',
      default: DEFAULT_IDENTITY_NAME_FORMAT,
      blank: DEFAULT_IDENTITY_NAME_FORMAT,
      summary:
        'The names of identities that enroll by themselves: [caName], [caId], [commonName], [requestedName] and [identityId] are replaced.',
    }),
    externalIdClaim: f.object(
      {
        location: f.choice(['COMMON_NAME', 'SAN_EMAIL', 'SAN_URI'], {
          ...claimMember,
          default: 'COMMON_NAME',
          summary: 'The names of a certificate that are considered.',
        }),
        matcher: f.choice(['ALL', 'PREFIX', 'SUFFIX', 'SCHEME'], {
          ...claimMember,
          default: 'ALL',
          summary:
            'Which of the names match: all of them, those with this prefix or suffix, which is removed, or URIs of this scheme.',
        }),
        matcherCriteria: f.text({ ...claimMember, summary: 'The prefix, suffix or scheme.' }),
        parser: f.choice(['NONE', 'SPLIT'], {
          ...claimMember,
          default: 'NONE',
          summary: 'Whether each match is split into several values.',
        }),
        parserCriteria: f.text({ ...claimMember, summary: 'The separator of the values.' }),
        index: f.int({ ...claimMember, min: 0, max: INT32.max, summary: 'Which of the values counts, from 0.' }),
      },
      {
        nullable: true,
        acceptsNull: true,
        omitNull: true,
        summary:
          'Where a certificate names the external id of its identity; such certificates can change without a new enrollment.',
      },
    ),
  },
  links: [
    { key: 'verify', onlyIf: { field: 'isVerified', is: false } },
    { key: 'jwt', onlyIf: { field: 'isAutoCaEnrollmentEnabled', is: true } },
  ],
  columns: ['id', 'name', 'isVerified', 'isAuthEnabled', 'isOttCaEnrollmentEnabled', 'isAutoCaEnrollmentEnabled'],
  example: {
    create: {
      name: 'factory',
      certPem: 'ca.pem',
      isAuthEnabled: true,
      isOttCaEnrollmentEnabled: true,
      isAutoCaEnrollmentEnabled: true,
      identityRoles: ['device'],
      identityNameFormat: '[commonName]',
    },
    filter: 'isVerified = false',
  },
})
