// The inventory of certificates: those that the network depends on, wherever they are stored.
import { f } from '../schema/fields.ts'
import { text } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'

const kinds = ['root', 'intermediate', 'server', 'identity', 'router', 'authority', 'signer'] as const
export type CertificateKind = (typeof kinds)[number]

export const certificates = defineResource({
  name: 'certificate',
  plural: 'certificates',
  summary: 'A certificate that the network depends on.',
  // It follows the records that hold the certificates, whose changes are audited.
  audit: 'none',
  fields: {
    kind: f.choice(kinds, {
      access: 'read',
      filter: true,
      summary:
        'root, intermediate and server: of this controller. identity and router: the certificate that one signs in with. authority: of an operator. signer: of an external JWT signer.',
    }),
    subject: f.text({ access: 'read', filter: true }),
    fingerprint: f.text({ access: 'read', filter: true, summary: 'SHA-1 of the DER, in hexadecimal.' }),
    notBefore: f.time({ access: 'read', filter: true, summary: 'The beginning of its validity.' }),
    notAfter: f.time({ access: 'read', filter: true, summary: 'The end of its validity.' }),
    isCurrent: f.bool({
      access: 'read',
      filter: true,
      default: true,
      summary: 'Whether it is in use. A former authority is not: it only verifies the certificates that it issued.',
    }),
    holderId: f.text({ access: 'read', nullable: true, filter: true, summary: 'The id of the record that holds it.' }),
    // The record that the certificate was read from.
    sourceId: f.text({ access: 'internal' }),
  },
  computed: {
    holderName: { ...text, nullable: true, description: 'The name of the record that holds it.' },
    state: { ...text, enum: ['pending', 'valid', 'expiring', 'expired'] },
  },
  computedFrom: ['kind', 'holderId', 'notBefore', 'notAfter'],
  verbs: [],
  columns: ['kind', 'subject', 'holderName', 'notAfter', 'state'],
  example: { create: {}, filter: 'kind = "identity" sort by notAfter' },
})
