// Controllers at an address that their enrollment tokens name, and the tokens as a person receives them.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Overrides } from '../../src/settings/settings.ts'
import { cleanEnvironment } from './binary.ts'
import { callOverTls } from './certificates.ts'
import { commandLine } from './command-line.ts'
import { CLIENT, type TestController, type TestOptions, type TestResponse, testController } from './controller.ts'
import { findFreePort } from './free-port.ts'
import { People } from './people.ts'

export interface ReachableController {
  readonly world: TestController
  readonly url: string
  readonly rootPem: string
  readonly people: People
  stop(): Promise<void>
}

interface ReachableOptions extends Pick<TestOptions, 'clock' | 'operations'> {
  readonly apis?: readonly string[]
  readonly settings?: Overrides
}

/** A controller that listens on the address that it advertises. */
export async function reachableController({
  apis = ['client', 'management'],
  settings = {},
  ...options
}: ReachableOptions = {}): Promise<ReachableController> {
  const address = `127.0.0.1:${await findFreePort()}`
  const listeners = [{ address, apis: [...apis], dialect: 'native' }]
  const world = await testController({ ...options, settings: { listeners, advertise: [address], ...settings } })
  const { url, rootPem } = await world.listen()
  return { world, url, rootPem, people: await People.in(world), stop: () => world.close() }
}

export interface Token {
  readonly identityId: string
  /** The folder of the file, which contains nothing else. */
  readonly folder: string
  /** The file with the JWT. */
  readonly file: string
  readonly jwt: string
}

/** A new identity with an enrollment, and the file with its token. */
export async function enrollmentToken(
  people: People,
  enrollment: { ott: true } | { updb: string } | { ottca: string } = { ott: true },
  values: Record<string, unknown> = {},
): Promise<Token> {
  const identityId = await people.identity({ ...values, enrollment })
  const [method = ''] = Object.keys(enrollment)
  const { enrollment: outstanding } = await people.manage('GET', `/identities/${identityId}`)
  return { identityId, ...writeToken(outstanding[method].jwt) }
}

/** A file with this token, in a folder of its own. */
export function writeToken(jwt: string): Omit<Token, 'identityId'> {
  const folder = mkdtempSync(join(tmpdir(), 'enrollment-'))
  const file = join(folder, 'laptop.jwt')
  writeFileSync(file, `${jwt}\n`)
  return { folder, file, jwt }
}

export interface EnrolledFile {
  readonly identityId: string
  /** The folder of the identity file, which also contains the token. */
  readonly folder: string
  /** The identity file. */
  readonly file: string
}

/** The identity file of a new identity, as `controller enroll` writes it. */
export async function enrolledFile(
  { people }: Pick<ReachableController, 'people'>,
  values: Record<string, unknown> = {},
): Promise<EnrolledFile> {
  const { identityId, file, folder } = await enrollmentToken(people, { ott: true }, values)
  const { stderr } = await commandLine(['enroll', file], cleanEnvironment())
  if (stderr !== '') throw new Error(stderr)
  return { identityId, folder, file: join(folder, 'laptop.json') }
}

export interface IdentityFileText {
  readonly ztAPI: string
  readonly id: { readonly key: string; readonly cert: string; readonly ca: string }
}

export function readIdentityFileText(path: string): IdentityFileText {
  return JSON.parse(readFileSync(path, 'utf8')) as IdentityFileText
}

/** Signs in over TLS with an identity file. */
export function signInByFile({ url, rootPem }: ReachableController, path: string): Promise<TestResponse> {
  const { id } = readIdentityFileText(path)
  const [cert = '', key = ''] = [id.cert, id.key].map((value) => value.replace(/^pem:/, ''))
  return callOverTls(url, rootPem, { method: 'POST', path: `${CLIENT}/authenticate?method=cert`, body: {}, cert, key })
}
