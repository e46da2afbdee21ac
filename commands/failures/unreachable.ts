// The failures for a controller that cannot be reached, or whose certificate is not trusted.
import type { UnreachableError } from '../../src/client/http-transport.ts'
import { resolveDataDirectory } from '../client/data-directory.ts'
import { findLocalDirectory } from '../client/local-directory.ts'
import { Profiles } from '../client/profiles.ts'
import { fetchRoots, listRoots } from '../client/trust.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { describeChangedRoot } from './changed-root.ts'
import type { FailedAttempt, Failure } from './failure-text.ts'

/** The failure, with a hint that depends on the profiles and data directories of this machine. */
export async function describeUnreachable(error: UnreachableError, attempt: FailedAttempt): Promise<Failure> {
  if (error.isForeign) return { code: 'NO_CONTROLLER', message: error.message, hint: ADDRESS_HINT }
  return error.isUntrusted ? describeUntrusted(error) : describeNoConnection(error, attempt)
}

const ADDRESS_HINT =
  'use the address that "controller serve" prints, such as https://HOST:1280, and not that of a router'

/** The commands about the identity that is signed in, which a data directory does not have. */
const ABOUT_CALLER = /^(whoami|access|passwd|mfa|current-identity|current-api-session)( |$)/

function describeNoConnection(error: UnreachableError, { command, argv }: FailedAttempt): Failure {
  const directory = ABOUT_CALLER.test(command) ? undefined : findLocalDirectory(error.url)
  const remedy = error.isUnknownHost ? 'check the name of the host' : 'start it with controller serve'
  const hint =
    directory === undefined
      ? `${remedy}, or use --controller with another URL`
      : toOfflineCommand(command, argv, directory)
  return { code: 'UNREACHABLE', message: error.message, hint }
}

/** The command on a data directory. Words behind `--` are names, and no flags. */
function toOfflineCommand(command: string, argv: readonly string[], directory: string): string {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length
  const ownFlags = directory === resolveDataDirectory(undefined) ? [] : ['--data-dir', directory]
  return toCommandLine(command, [
    ...withoutConnection(argv.slice(0, end)),
    '--offline',
    ...ownFlags,
    ...argv.slice(end),
  ])
}

/** The words without the flags that choose a controller. */
function withoutConnection(argv: readonly string[]): string[] {
  return argv.filter((word, at) => {
    const isValue = argv[at - 1] === '--controller' || argv[at - 1] === '--profile'
    return !isValue && !/^--(controller|profile)(=|$)/.test(word)
  })
}

/**
 * Compares the pinned root certificate with the offered one: the controller was created again, or another host
 * intercepts the connection.
 */
async function describeUntrusted(error: UnreachableError): Promise<Failure> {
  const { url } = error
  const profiles = Profiles.open(process.env)
  const pinned = profiles.names.map((name) => profiles.get(name)).find((candidate) => candidate?.url === url)
  const expected = listRoots(pinned?.rootPem ?? '').map(({ fingerprint }) => fingerprint)
  const offeredFingerprints = (await fetchRoots(url).catch(() => [])).map(({ fingerprint }) => fingerprint)
  const [offeredFingerprint] = offeredFingerprints
  if (
    !offeredFingerprint ||
    expected.length === 0 ||
    expected.some((fingerprint) => offeredFingerprints.includes(fingerprint))
  ) {
    return { code: 'UNTRUSTED', message: error.message, hint: `controller login ${url}` }
  }
  return describeChangedRoot(url, offeredFingerprint, expected)
}
