// Controllers at an address that their enrollment tokens name, and the tokens as a person receives them.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Overrides } from '../../src/config.ts'
import { freePort } from './binary.ts'
import { type TestController, testController } from './controller.ts'
import { People } from './people.ts'

export interface ReachableController {
  readonly world: TestController
  readonly url: string
  readonly rootPem: string
  readonly people: People
  stop(): Promise<void>
}

/** A controller that listens on the address that it advertises, with these APIs. */
export async function reachableController(
  settings: Overrides = {},
  apis: readonly string[] = ['client', 'management'],
): Promise<ReachableController> {
  const address = `127.0.0.1:${await freePort()}`
  const listeners = [{ address, apis: [...apis], dialect: 'native' }]
  const world = await testController({ settings: { listeners, advertise: [address], ...settings } })
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
