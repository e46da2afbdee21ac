// `controller ca verify`: verifies a certificate authority, by a certificate that it issued or by its private key.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { Flags } from '@oclif/core'
import { resolveId } from '../client/names.ts'
import { loadApiDescription } from '../foundation/description.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { readPem, readSecret } from '../foundation/flag-values.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { type CommandRun, defineConnectedCommand } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'

export const caVerify = defineConnectedCommand({
  summary: 'Verifies a certificate authority, by a certificate that it issued to its verification token.',
  aliases: ['cas:verify'],
  args: { ca: requiredArgument({ description: 'Name or id of the authority.' }) },
  flags: {
    cert: Flags.string({
      description: 'A certificate of the authority, with the verification token as its common name.',
      helpValue: 'FILE',
    }),
    'ca-key': Flags.string({
      description: 'The private key of the authority, as PEM: makes that certificate here. The key is not sent.',
      helpValue: 'FILE',
      exclusive: ['cert'],
    }),
  },
  example: 'factory --ca-key ca.key',
  async run({ client, args, flags, print, notice }) {
    const resource = loadApiDescription().resources.cas
    if (!resource) return
    // Files are read before the first request.
    const { cert, 'ca-key': keyFile } = flags as Readonly<Record<string, string | undefined>>
    const key = keyFile === undefined ? undefined : readKey(await readSecret('ca-key', keyFile))
    const certPem = cert === undefined ? undefined : await readPem('cert', cert)
    if (key === undefined && certPem === undefined) throw makeUsageError('missing flag: --cert or --ca-key')
    const id = await resolveId(client, resource, args.ca ?? '')
    const proof = certPem ?? (await makeProof(client, id, key as KeyObject))
    await client.call('POST', `/cas/${encodeURIComponent(id)}/verify`, proof, { 'content-type': 'text/plain' })
    notice(`Verified ca ${args.ca}.`)
    await print({ kind: 'record', record: await fetchAuthority(client, id), columns: resource.columns })
  },
})

function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    const isEncrypted = (error as NodeJS.ErrnoException).code === 'ERR_MISSING_PASSPHRASE'
    const message = isEncrypted ? '--ca-key is encrypted' : '--ca-key is not a private key in PEM'
    const hint = 'openssl pkey -in ENCRYPTED -out ca.key'
    throw makeUsageError(message, { field: 'ca-key', ...(isEncrypted ? { hint } : {}) })
  }
}

async function makeProof(client: CommandRun['client'], id: string, key: KeyObject): Promise<string> {
  const { name, certPem, verificationToken } = await fetchAuthority(client, id)
  const authority = new X509Certificate(String(certPem))
  if (!authority.checkPrivateKey(key)) {
    throw makeUsageError(`--ca-key is not the key of the authority ${name}`, { field: 'ca-key' })
  }
  const { makeVerificationCertificate } = await import('../../src/pki/verification-certificate.ts')
  return makeVerificationCertificate(authority, key, String(verificationToken), Date.now())
}

async function fetchAuthority(client: CommandRun['client'], id: string): Promise<OutputRecord> {
  const { data } = await client.call('GET', `/cas/${encodeURIComponent(id)}`)
  return data as OutputRecord
}
