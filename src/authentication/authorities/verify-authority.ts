// Proves that an operator holds the key of an authority: it signs a certificate whose common name is the verification token.
import { X509Certificate } from 'node:crypto'
import { cas } from '../../definitions/resources/cas.ts'
import { errors } from '../../foundation/errors.ts'
import { readCertificateNames } from '../../pki/certificate-names.ts'
import { buildChain } from '../../pki/chains.ts'
import { parsePemBlocks } from '../../pki/pem.ts'
import { type EntityStore, get } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { parseAuthorityCertificates } from './authority-certificates.ts'
import type { CertificateAuthority } from './registered-authority.ts'

/**
 * Marks an authority as verified.
 * @param pem a certificate that the authority issued to its verification token
 * @throws NOT_FOUND, CA_ALREADY_VERIFIED, COULD_NOT_PARSE_BODY, EXPECTED_PEM_CERTIFICATE, COULD_NOT_PARSE_DER_BLOCK,
 * INVALID_COMMON_NAME, CERTIFICATE_FAILED_VALIDATION
 */
export async function verifyAuthority(
  { entities }: { readonly entities: EntityStore },
  context: Context,
  id: string,
  pem: string,
): Promise<void> {
  const authority = await get(context, cas, id)
  requireUnverified(authority)
  const certificate = parseVerificationCertificate(pem)
  if (readCertificateNames(certificate).commonName !== authority.verificationToken) {
    throw errors.INVALID_COMMON_NAME({ message: `the common name must be ${authority.verificationToken}` })
  }
  const { anchor } = parseAuthorityCertificates(authority.certPem)
  if (!buildChain(certificate, [], [anchor], { now: context.clock.now() })) {
    throw errors.CERTIFICATE_FAILED_VALIDATION({
      message: 'the certificate must be signed by the authority itself, and both must be valid now',
    })
  }
  await context.write(async (tx) => {
    // Neither the certificate nor the token of an authority ever changes.
    const current = await get(tx, cas, id)
    requireUnverified(current)
    await entities.update(tx, cas, current, { isVerified: true })
  })
}

function requireUnverified({ isVerified }: CertificateAuthority): void {
  if (isVerified) throw errors.CA_ALREADY_VERIFIED()
}

function parseVerificationCertificate(pem: string): X509Certificate {
  const [block] = parsePemBlocks(pem)
  if (!block) throw errors.COULD_NOT_PARSE_BODY({ message: 'the body must be a PEM certificate' })
  if (block.label !== 'CERTIFICATE') throw errors.EXPECTED_PEM_CERTIFICATE()
  try {
    return new X509Certificate(block.bytes)
  } catch (cause) {
    throw errors.COULD_NOT_PARSE_DER_BLOCK(undefined, { cause })
  }
}
