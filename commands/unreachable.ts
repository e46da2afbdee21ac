// A controller that cannot be reached, or is another than it was: what a person is told, after a look around.
import type { UnreachableError } from '../src/client/http-transport.ts'
import { describeChangedRoot } from './changed-root.ts'
import { findDirectory } from './client/known-directories.ts'
import { Profiles } from './client/profiles.ts'
import { fetchRoot, rootFromPem } from './client/trust.ts'
import { resolveDataDirectory } from './data-directory.ts'
import type { Attempt, Failure } from './failure-text.ts'
import { toCommandLine } from './shell-words.ts'

export async function describeUnreachable(error: UnreachableError, attempt: Attempt): Promise<Failure> {
  return error.isUntrusted ? describeDistrust(error) : describeSilence(error, attempt)
}

function describeSilence(error: UnreachableError, { command, argv }: Attempt): Failure {
  const directory = directoryOfUnreachable(error.url)
  const hint =
    directory === undefined
      ? 'controller serve where its data is, or --controller with another URL'
      : `${toCommandLine(command, withoutConnection(argv))} --offline${directory === resolveDataDirectory(undefined) ? '' : ` --data-dir ${directory}`}`
  return { code: 'UNREACHABLE', message: error.message, hint }
}

/** Where the controller of a URL has its data, if that is on this machine. */
function directoryOfUnreachable(url: string): string | undefined {
  const profiles = Profiles.open(process.env)
  const profile = profiles.names.map((name) => profiles.get(name)).find((known) => known?.url === url)
  const candidates = [resolveDataDirectory(process.env.CONTROLLER_DATA_DIR || undefined), resolveDataDirectory('data')]
  return profile && findDirectory(profile.rootPem, candidates, process.env)
}

/** The same words without the flags that choose a controller. */
function withoutConnection(argv: readonly string[]): string[] {
  return argv.filter((word, at) => {
    const isValue = argv[at - 1] === '--controller' || argv[at - 1] === '--profile'
    return !isValue && !/^--(controller|profile)(=|$)/.test(word)
  })
}

/** Says which root was expected and which one is there: a controller that was made anew, or somebody in between. */
async function describeDistrust(error: UnreachableError): Promise<Failure> {
  const { url } = error
  const profiles = Profiles.open(process.env)
  const pinned = profiles.names.map((name) => profiles.get(name)).find((known) => known?.url === url)
  const expected = pinned && rootFromPem(pinned.rootPem)?.fingerprint
  const offered = await fetchRoot(url).catch(() => undefined)
  if (!expected || !offered || offered.fingerprint === expected) {
    return { code: 'UNTRUSTED', message: error.message, hint: `controller login ${url}` }
  }
  return describeChangedRoot(url, offered.fingerprint, [expected])
}
