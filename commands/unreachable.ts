// A controller that cannot be reached, or is another than it was: what a person is told, after a look around.
import type { Unreachable } from '../src/client/http-transport.ts'
import { directoryOf } from '../src/client/known-directories.ts'
import { Profiles } from '../src/client/profiles.ts'
import { offeredRoot, rootFromPem } from '../src/client/trust.ts'
import { describeChangedRoot } from './changed-root.ts'
import { dataDirectory } from './data-directory.ts'
import type { Failure } from './failure-text.ts'
import type { Attempt } from './failures.ts'
import { commandLine } from './shell-words.ts'

export async function describeUnreachable(error: Unreachable, attempt: Attempt): Promise<Failure> {
  return error.isUntrusted ? describeDistrust(error) : describeSilence(error, attempt)
}

function describeSilence(error: Unreachable, { command, argv }: Attempt): Failure {
  const directory = directoryOfUnreachable(error.url)
  const hint =
    directory === undefined
      ? 'controller serve where its data is, or --controller with another URL'
      : `${commandLine(command, withoutConnection(argv))} --offline${directory === dataDirectory(undefined) ? '' : ` --data-dir ${directory}`}`
  return { code: 'UNREACHABLE', message: error.message, hint }
}

/** Where the controller of a URL has its data, if that is on this machine. */
function directoryOfUnreachable(url: string): string | undefined {
  const profiles = Profiles.open(process.env)
  const profile = profiles.names.map((name) => profiles.get(name)).find((known) => known?.url === url)
  const candidates = [dataDirectory(process.env.CONTROLLER_DATA_DIR || undefined), dataDirectory('data')]
  return profile && directoryOf(profile.rootPem, candidates, process.env)
}

/** The same words without the flags that choose a controller. */
function withoutConnection(argv: readonly string[]): string[] {
  return argv.filter((word, at) => {
    const isValue = argv[at - 1] === '--controller' || argv[at - 1] === '--profile'
    return !isValue && !/^--(controller|profile)(=|$)/.test(word)
  })
}

/** Says which root was expected and which one is there: a controller that was made anew, or somebody in between. */
async function describeDistrust(error: Unreachable): Promise<Failure> {
  const { url } = error
  const profiles = Profiles.open(process.env)
  const pinned = profiles.names.map((name) => profiles.get(name)).find((known) => known?.url === url)
  const expected = pinned && rootFromPem(pinned.rootPem)?.fingerprint
  const offered = await offeredRoot(url).catch(() => undefined)
  if (!expected || !offered || offered.fingerprint === expected) {
    return { code: 'UNTRUSTED', message: error.message, hint: `controller login ${url}` }
  }
  return describeChangedRoot(url, offered.fingerprint, [expected])
}
