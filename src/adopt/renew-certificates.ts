// The certificates of an adopted authority: what has to be replaced at once, and what will have to be replaced soon.
import type { Instant } from '../foundation/clock.ts'
import type { Authority } from '../pki/authority.ts'
import { isRootDue } from '../pki/authority-certificates.ts'
import { isSelfSigned } from '../pki/chains.ts'
import { KeyFileError } from '../pki/files.ts'
import { listCertificateHosts } from '../settings/addresses.ts'
import type { Config } from '../settings/settings.ts'
import type { AdoptionNotes } from './adoption-notes.ts'

/** The server certificate must have the names of the settings, and be issued by the authority that clients trust. */
export function renewCertificates(authority: Authority, config: Config, now: Instant, notes: AdoptionNotes): void {
  try {
    for (const role of authority.renewDue(listCertificateHosts(config), now, config['adoption.trialEnds']))
      notes.add('certificates', role, '', `the ${role} certificate is replaced by a new one`)
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error
    notes.add('certificates', 'intermediate', '', 'the signing certificate is due, and the key of its root is not here')
  }
  for (const root of [authority.root, ...authority.former.filter(isSelfSigned)]) {
    if (!isRootDue(root, now)) continue
    const remedy =
      root === authority.root ? 'replace it (controller pki rotate root)' : 'clients that trust no other stop then'
    const name = root.subject.replaceAll('\n', ', ')
    notes.add('certificates', 'root', name, `the root ends at ${root.validTo}: ${remedy}`)
  }
}
