// The controller and the credential that environment variables name, for machines without profiles.
import { isMachineToken } from '../../src/definitions/resources/tokens.ts'
import { isUuid } from '../../src/foundation/ids.ts'
import { CommandError, makeUsageError } from '../foundation/exit-codes.ts'
import { normalizeUrl } from './controller-url.ts'
import { readIdentityFile } from './identity-files.ts'
import type { Profile, Profiles } from './profiles.ts'
import { readRootFile, rootFromPem } from './trust.ts'

type Variable = `CONTROLLER_${'PROFILE' | 'URL' | 'TOKEN' | 'IDENTITY_FILE' | 'ROOT_FILE'}`

/** The settings of the variables: no profile if they hold neither a credential nor a controller with its root. */
export interface Environment {
  /** It is not stored, and has no name. */
  readonly profile: Profile | undefined
  /** The controller, also without a credential. */
  readonly url: string | undefined
}

/**
 * Reads the variables. Those of another controller than that of the flag are not used.
 * @param flagUrl the controller that a flag names
 * @param profiles their roots are pinned, so a controller of one of them requires no file
 * @throws CommandError with exit code 2 that names the variable which is missing, or cannot be used
 */
export function readEnvironment(env: NodeJS.ProcessEnv, flagUrl: string | undefined, profiles: Profiles): Environment {
  const read = (name: Variable) => env[name] || undefined
  const token = read('CONTROLLER_TOKEN')
  const identityPath = read('CONTROLLER_IDENTITY_FILE')
  const rootPath = read('CONTROLLER_ROOT_FILE')
  const urlText = read('CONTROLLER_URL')
  const namedUrl = urlText === undefined ? undefined : naming('CONTROLLER_URL', () => normalizeUrl(urlText))
  if (token === undefined && identityPath === undefined && (namedUrl === undefined || rootPath === undefined)) {
    return { profile: undefined, url: namedUrl }
  }
  const credential = token === undefined ? 'CONTROLLER_IDENTITY_FILE' : 'CONTROLLER_TOKEN'
  if (identityPath !== undefined) assertAlone('CONTROLLER_TOKEN', token, 'CONTROLLER_IDENTITY_FILE')
  const file =
    identityPath === undefined ? undefined : naming('CONTROLLER_IDENTITY_FILE', () => readIdentityFile(identityPath))
  const ownUrl = namedUrl ?? file?.url
  if (flagUrl !== undefined && ownUrl !== undefined && flagUrl !== ownUrl) return { profile: undefined, url: undefined }
  if (token !== undefined || identityPath !== undefined) {
    assertAlone('CONTROLLER_PROFILE', read('CONTROLLER_PROFILE'), credential)
  }
  if (token !== undefined && !isMachineToken(token) && !isUuid(token)) {
    throw makeUsageError('CONTROLLER_TOKEN is not a token', {
      hint: 'set it to what "controller token create" printed, or to the token of a session',
    })
  }
  const url = ownUrl ?? flagUrl
  if (url === undefined) {
    throw makeUsageError('CONTROLLER_URL is not set, so the controller of CONTROLLER_TOKEN is not known', {
      hint: 'CONTROLLER_URL=https://HOST:PORT',
    })
  }
  const rootPem =
    rootPath === undefined
      ? (rootFromPem(file?.authoritiesPem ?? '')?.pem ?? findPinnedRoot(url, profiles))
      : naming('CONTROLLER_ROOT_FILE', () => readRootFile(rootPath).pem)
  if (rootPem === undefined) {
    throw makeUsageError(`CONTROLLER_ROOT_FILE is not set, so the root certificate of ${url} is not known`, {
      hint: 'CONTROLLER_ROOT_FILE=FILE, with the root certificate as PEM',
    })
  }
  return {
    url,
    profile: { url, rootPem, ...(token === undefined ? {} : { token }), identityFile: identityPath },
  }
}

/** The result; an error names the variable. */
function naming<T>(name: Variable, use: () => T): T {
  try {
    return use()
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const { hint } = error
    throw makeUsageError(`${name}: ${error.message}`, hint === undefined ? {} : { hint })
  }
}

function assertAlone(name: Variable, value: string | undefined, other: Variable): void {
  if (value !== undefined) throw makeUsageError(`${name} and ${other} are both set`, { hint: `unset ${name}` })
}

function findPinnedRoot(url: string, profiles: Profiles): string | undefined {
  return profiles.names.map((name) => profiles.get(name)).find((profile) => profile?.url === url)?.rootPem
}
