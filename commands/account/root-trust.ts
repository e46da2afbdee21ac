// Decides which root certificate of a controller to pin: one from a file, one with an expected fingerprint, the one of a
// profile, or one that the user confirms.
import { Profiles } from '../client/profiles.ts'
import { fetchRoots, listRoots, type RootCertificate, readRootFile } from '../client/trust.ts'
import { describeChangedRoot } from '../failures/changed-root.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { canPrompt, confirm } from '../terminal/prompts.ts'

export interface TrustFlags {
  readonly 'ca-file'?: string | undefined
  readonly fingerprint?: string | undefined
  readonly yes?: boolean
}

/**
 * The root certificate to pin for the controller at this URL.
 * @param expected the SHA-256 of its root, if a bootstrap token names it
 * @param notice writes a message for the user
 * @throws CommandError if the offered root is not the expected one, or is not confirmed
 */
export async function resolveTrustedRoot(
  url: string,
  flags: TrustFlags,
  expected: string | undefined,
  notice: (text: string) => void,
): Promise<RootCertificate> {
  if (flags['ca-file'] !== undefined) return readRootFile(flags['ca-file'], 'ca-file')
  const offeredRoots = await fetchRoots(url)
  const [offeredRoot] = offeredRoots
  if (!offeredRoot) {
    const message = `${url} is not a controller: it does not offer a root certificate`
    throw new CommandError(EXIT.failed, 'NO_CONTROLLER', message, { hint: 'check the URL' })
  }
  const expectedFingerprint = (expected ?? flags.fingerprint)?.replaceAll(':', '').toLowerCase()
  if (expectedFingerprint !== undefined) return findExpectedRoot(url, offeredRoots, expectedFingerprint)
  const pinnedFingerprints = listPinnedFingerprints(url)
  // While the controller replaces its root it offers both, and the pinned one is enough to verify it.
  const pinnedRoot = offeredRoots.find(({ fingerprint }) => pinnedFingerprints.includes(fingerprint))
  if (pinnedRoot) return pinnedRoot
  if (pinnedFingerprints.length > 0) throw rootChangedError(url, offeredRoot, pinnedFingerprints)
  notice(`The root certificate of ${url} has the SHA-256 ${offeredRoot.fingerprint}`)
  if (flags.yes === true) return offeredRoot
  if (!canPrompt()) {
    throw makeUsageError(`the root certificate of ${url} is not trusted yet`, {
      hint: '--fingerprint SHA-256, --ca-file FILE, or --yes',
    })
  }
  if (await confirm('Is this the fingerprint that you expect?', '--yes')) return offeredRoot
  throw new CommandError(EXIT.interrupted, 'INTERRUPTED', 'the root certificate was not accepted')
}

/**
 * A root certificate that differs from the pinned one belongs to a controller that was created again, or to an attacker.
 * Only a fingerprint from a trusted place can tell which, so neither a prompt nor `--yes` is enough.
 */
function rootChangedError(url: string, offeredRoot: RootCertificate, pinned: readonly string[]): CommandError {
  const { code, message, hint } = describeChangedRoot(url, offeredRoot.fingerprint, pinned)
  return new CommandError(EXIT.failed, code, message, { hint })
}

function findExpectedRoot(url: string, offeredRoots: readonly RootCertificate[], expected: string): RootCertificate {
  const root = offeredRoots.find(({ fingerprint }) => fingerprint === expected)
  if (root) return root
  const fingerprints = offeredRoots.map(({ fingerprint }) => fingerprint).join(' or ')
  const message = `unexpected root certificate of ${url}: its SHA-256 is ${fingerprints}, expected ${expected}`
  throw new CommandError(EXIT.failed, 'UNTRUSTED', message, {
    hint: 'compare it with the fingerprint that "controller serve" prints',
  })
}

/** The fingerprints that profiles pin for this URL. */
function listPinnedFingerprints(url: string): string[] {
  const profiles = Profiles.open(process.env)
  return profiles.names.flatMap((name) => {
    const profile = profiles.get(name)
    return profile?.url === url ? listRoots(profile.rootPem).map(({ fingerprint }) => fingerprint) : []
  })
}
