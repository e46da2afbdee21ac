// Finds the external id of an identity in a certificate, as the authority of the certificate describes it.

import type { cas } from '../../definitions/resources/cas.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { errors } from '../../foundation/errors.ts'
import { type CertificateNames, readCertificateNames } from '../../pki/certificate-names.ts'
import type { EncodedCertificate } from '../../pki/certificates.ts'

export type ExternalIdClaim = NonNullable<Entity<typeof cas>['externalIdClaim']>

/** @throws REFERENCED_ENTITY_NOT_FOUND, which clients know for claims, if the members do not fit each other */
export function requireConsistentClaim({
  location,
  matcher,
  matcherCriteria,
  parser,
  parserCriteria,
}: ExternalIdClaim): void {
  if (matcher === 'SCHEME' && location !== 'SAN_URI')
    throw claimError('matcher', 'SCHEME is possible for the location SAN_URI only', matcher)
  if (matcher !== 'ALL' && matcherCriteria === '')
    throw claimError('matcherCriteria', `is required for the matcher ${matcher}`)
  if (parser === 'SPLIT' && parserCriteria === '')
    throw claimError('parserCriteria', 'is required for the parser SPLIT')
}

function claimError(member: string, reason: string, value?: unknown) {
  return errors.REFERENCED_ENTITY_NOT_FOUND({ field: `externalIdClaim.${member}`, reason, value })
}

/** Returns the external id that a certificate names; undefined if it names none. */
export function readExternalId(claim: ExternalIdClaim, certificate: EncodedCertificate): string | undefined {
  const values = selectNames(claim, readCertificateNames(certificate))
    .flatMap((name) => matchName(claim, name) ?? [])
    .flatMap((match) => (claim.parser === 'SPLIT' ? match.split(claim.parserCriteria) : [match]))
  const value = values[claim.index]
  // No identity has a blank external id.
  return value?.trim() ? value : undefined
}

function selectNames({ location }: ExternalIdClaim, { commonName, emails, uris }: CertificateNames): readonly string[] {
  switch (location) {
    case 'COMMON_NAME':
      return commonName === undefined ? [] : [commonName]
    case 'SAN_EMAIL':
      return emails
    case 'SAN_URI':
      return uris
  }
}

/** Returns what a name contributes; undefined if it does not match. */
function matchName({ matcher, matcherCriteria: criteria }: ExternalIdClaim, name: string): string | undefined {
  switch (matcher) {
    case 'ALL':
      return name
    case 'PREFIX':
      return name.startsWith(criteria) ? name.slice(criteria.length) : undefined
    case 'SUFFIX':
      return name.endsWith(criteria) ? name.slice(0, -criteria.length) : undefined
    // RFC 3986 §3.1: the case of a scheme does not matter.
    case 'SCHEME':
      return name.toLowerCase().startsWith(`${criteria.toLowerCase()}:`) ? name : undefined
  }
}
