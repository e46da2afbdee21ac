// The keys by which the controller signs tokens of its own.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const tokenKeys = defineResource({
  name: 'token-key',
  plural: 'token-keys',
  summary: 'A key by which the controller signs tokens, certified by its own authority.',
  fields: {
    // Tokens name the key by it: SHA-1 of the certificate, lower-case hex.
    kid: f.text({ access: 'internal', unique: true }),
    certificate: f.text({ access: 'internal' }),
    encryptedKey: f.text({ access: 'internal', secret: true, isEncrypted: true }),
    signsFrom: f.time({ access: 'internal' }),
    // The end of the certificate. No token that it has signed is valid any more by then.
    notAfter: f.time({ access: 'internal' }),
  },
  // The controller makes and deletes them; routers receive the certificates.
  verbs: [],
  isConfidential: true,
  columns: ['id', 'kid', 'signsFrom', 'notAfter'],
  example: { create: {}, filter: 'id = "…"' },
})
