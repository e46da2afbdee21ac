// Every command that follows from the API, by its own example, over HTTPS and offline: the same results.
import { X509Certificate } from 'node:crypto'
import { cpSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from '@oclif/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { REPLACED_OPERATIONS, toCommandId } from '../../commands/foundation/naming.ts'
import { describeApi } from '../../server/operations/api-description.ts'
import { controllers } from '../../src/definitions/resources/controllers.ts'
import { servicePolicies } from '../../src/definitions/resources/service-policies.ts'
import { services } from '../../src/definitions/resources/services.ts'
import { sessions } from '../../src/definitions/resources/sessions.ts'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { makeAuthority } from '../world/authorities.ts'
import { cleanEnvironment, type Finished } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { copyOfTemplate, type TestController, testController } from '../world/controller.ts'
import { commands, findExample, topics } from '../world/manifest.ts'
import { People } from '../world/people.ts'
import { wordsOf } from '../world/shell.ts'

const api = describeApi()

const operationOf = new Map(
  api.operations
    .filter(({ id }) => !REPLACED_OPERATIONS[id])
    .map((operation) => [toCommandId(operation, api), operation]),
)

describe('the registry', () => {
  it('has a command for every operation of the management API', () => {
    const without = api.operations
      .map((operation) => REPLACED_OPERATIONS[operation.id] ?? toCommandId(operation, api))
      .filter((id) => !commands[id])

    expect(without).toEqual([])
  })

  it('has an example for every command, and a filter in that of every list', () => {
    const examples = Object.values(commands).map((command) => [command.id, findExample(command)] as const)
    const lists = examples.filter(([id]) => operationOf.get(id)?.query?.filter)

    expect(
      examples.filter(([, example]) => !example.startsWith('controller ') && !example.startsWith('source')),
    ).toEqual([])
    expect(lists.filter(([, example]) => !example.includes('--filter'))).toEqual([])
  })

  it('has a summary for every topic and every command', () => {
    const bareTopics = Object.entries(topics).filter(([, { description }]) => description === '')
    const bareCommands = Object.values(commands).filter(({ summary }) => !summary)

    expect([...bareTopics.map(([name]) => name), ...bareCommands.map(({ id }) => id)]).toEqual([])
  })

  it('explains every flag', () => {
    const generic = /\(required\)|Can be repeated\.|Default: .*|^[A-Z_]+(, [A-Z_]+)*:|A time such as .*7d\./g
    const unexplained = Object.values(commands).flatMap(({ id, flags }) =>
      Object.values(flags).flatMap(({ name, description = '' }) =>
        description.replace(generic, '').trim() === '' ? [`${id} --${name}`] : [],
      ),
    )

    expect(unexplained).toEqual([])
  })

  it('lets no two flags of a command have one name', () => {
    for (const { id, flags } of Object.values(commands)) {
      const names = Object.values(flags).flatMap(({ name, aliases = [] }) => [name, ...aliases])
      expect(new Set(names).size, id).toBe(names.length)
    }
  })
})

// ---- both transports ---------------------------------------------------------------------------------------------------

interface Side {
  /** The rest of every command line. */
  readonly where: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly files: string
}

let online: Side
let offline: Side
let world: TestController

beforeAll(async () => {
  // One directory with an administrator's session, twice: what lists show of sessions is the same then. The session of another identity
  // is the newer one, which is shown and ended, because an offline caller has no session with a token of its own.
  const first = await testController()
  const { token } = await first.signIn({ name: 'operator', isAdmin: true })
  const certificate = await certificateOfNobody(first)
  const certPem = toCertificatePem(first.controller.authority.root)
  const other = {
    name: 'controller.example.com',
    certPem,
    fingerprint: 'none',
    publicKeyPrint: 'of another',
    servedAddresses: {},
  }
  await first.system.write(async (tx) =>
    first.controller.entities.insert(tx, controllers, newEntity(tx, controllers, other)),
  )
  await dialled(first)
  await first.stop()
  const second = copyOfTemplate()
  cpSync(first.directory, second, { recursive: true })
  world = await testController({ directory: first.directory })
  const { url, rootPem } = await world.listen()
  const { pem: authority } = await makeAuthority()
  online = side(['--controller', url], { certificate, authority })
  offline = side(['--offline', '--data-dir', second], { certificate, authority })
  const profiles = { current: 'test', profiles: { test: { url, rootPem, token } } }
  const config = join(online.env.XDG_CONFIG_HOME ?? '', 'controller')
  cpSync(profileFolder(profiles), config, { recursive: true })
})
afterAll(() => world?.close())

/** One that this network issued, and that no authenticator has. */
async function certificateOfNobody(world: TestController): Promise<string> {
  const people = await People.in(world, 'issuer')
  const { id, chain } = await people.device()
  await people.manage('DELETE', `/identities/${id}`)
  const [leaf] = parsePemBlocks(chain)
  return toCertificatePem(new X509Certificate(leaf?.bytes ?? ''))
}

/** A session for a service, which no command can make. */
function dialled({ system, controller }: TestController): Promise<void> {
  return system.write(async (tx) => {
    const serviceValues = { name: 'dialled', encryptionRequired: true }
    const { id: serviceId } = await controller.entities.insert(tx, services, newEntity(tx, services, serviceValues))
    const policy = {
      type: 'Dial' as const,
      semantic: 'AnyOf' as const,
      name: 'everything',
      identityRoles: ['#all'],
      serviceRoles: ['#all'],
    }
    await controller.entities.insert(tx, servicePolicies, newEntity(tx, servicePolicies, policy))
    const apiSession = await tx.db.selectFrom('api_sessions').select(['id', 'identityId']).executeTakeFirstOrThrow()
    const { id: apiSessionId, identityId } = apiSession
    const values = { apiSessionId, identityId, serviceId, type: 'Dial' as const }
    await controller.entities.insert(tx, sessions, newEntity(tx, sessions, values))
  })
}

function profileFolder(profiles: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'profiles-'))
  writeFileSync(join(folder, 'profiles.json'), JSON.stringify(profiles))
  return folder
}

function side(where: readonly string[], { certificate, authority }: Record<'certificate' | 'authority', string>): Side {
  const files = mkdtempSync(join(tmpdir(), 'every-command-'))
  writeFileSync(join(files, 'password.txt'), 'correct horse battery\n')
  writeFileSync(join(files, 'certificate.pem'), certificate)
  writeFileSync(join(files, 'ca.pem'), authority)
  return { where, env: cleanEnvironment(), files }
}

describe('the same command over HTTPS and offline', () => {
  // Records are made in the order in which they refer to each other, then everything is tried, then they are deleted.
  const ranks: Readonly<Record<string, number>> = { create: 0, delete: 2 }
  // The session that all others need ends last.
  const rankOf = (id: string) => (id === 'current-api-session:delete' ? 3 : (ranks[id.split(':')[1] ?? ''] ?? 1))
  const nouns = Object.values(api.resources).map(({ name }) => name)
  const order = (id: string) => {
    const at = nouns.indexOf(id.split(':')[0] ?? '')
    return rankOf(id) === 2 ? -at : at
  }
  const ids = [...operationOf.keys()].sort((a, b) => rankOf(a) - rankOf(b) || order(a) - order(b))

  it.each(ids.map((id) => [id.replaceAll(':', ' '), commands[id] as Command.Cached]))('%s', async (_name, command) => {
    const byHttps = await runExample(command, online)
    const byFile = await runExample(command, offline)

    if (isAboutOneself(command)) {
      expect(byFile.code).toBe(4)
      expect(byHttps.code).not.toBe(4)
      return
    }
    // The audit says who did what, and a check of the data was made by another process: that differs.
    if (command.id.startsWith('audit:') || command.id === 'database:data-integrity-results') {
      expect([byHttps.code, byFile.code]).toEqual([0, 0])
      return
    }
    expect(comparable(byFile)).toEqual(comparable(byHttps))
    if (isAboutReported(command)) {
      expect(byHttps.code, byHttps.stderr).toBe(5)
      return
    }
    if (isAboutSeveral(command)) {
      expect(byHttps.code, byHttps.stderr).toBe(6)
      return
    }
    // An example that can be pasted is one that is not refused as malformed.
    if (!needsFileOfItsOwn(command)) expect(byHttps.code, byHttps.stderr).toBe(0)
  })
})

/** A data directory has no identity of its own. */
function isAboutOneself({ id }: Command.Cached): boolean {
  return operationOf.get(id)?.path.startsWith('/current-') ?? false
}

/** Whether an operation is about reports of routers, which only memory holds: without a router there are none to show or to change. */
function isAboutReported({ id }: Command.Cached): boolean {
  const [noun = '', verb] = id.split(':')
  return ['circuit', 'link'].includes(noun) && verb !== 'list'
}

/** Whether an operation changes one of several controllers: one that is alone refuses it. */
function isAboutSeveral({ id }: Command.Cached): boolean {
  return id.startsWith('node:') && id !== 'node:list'
}

/** A body that only fits what the operation is about, such as a signed certificate: its example cannot be made up. */
function needsFileOfItsOwn(command: Command.Cached): boolean {
  return findExample(command).includes('@FILE') && !command.id.endsWith(':replace')
}

async function runExample(command: Command.Cached, side: Side): Promise<Finished> {
  const wanting = SURROUNDINGS.find(({ commands }) => commands.includes(command.id))
  const fill = (words: readonly string[]) => filledIn(words, command, side)
  const words = wordsOf(findExample(command)).slice(1)
  if (wanting) await runOn(side, await fill(wanting.before))
  const finished = await runOn(side, await fill(words))
  if (wanting?.after) await runOn(side, await fill(wanting.after))
  return finished
}

const CERTIFICATE_OF_LAPTOP = ['--identity', 'laptop', '--method', 'cert', '--cert-pem', '@certificate.pem']

/** Changes that examples need besides those of other examples: laptop has a password by now, and no certificate. */
const SURROUNDINGS: readonly { commands: readonly string[]; before: readonly string[]; after?: readonly string[] }[] = [
  {
    commands: ['identity:request-extend', 'authenticator:request-extend'],
    before: ['authenticator', 'create', ...CERTIFICATE_OF_LAPTOP],
    after: ['authenticator', 'delete', 'ID', '--yes'],
  },
  // The last credential of the last administrator cannot be deleted.
  { commands: ['authenticator:delete'], before: ['authenticator', 'create', ...CERTIFICATE_OF_LAPTOP] },
]

function runOn({ where, env }: Side, words: readonly string[]): Promise<Finished> {
  return commandLine([...words, ...where], env)
}

/** The words with ids and files of this side. */
async function filledIn(words: readonly string[], command: Command.Cached, side: Side): Promise<string[]> {
  const filled: string[] = []
  for (const word of words) {
    if (word === 'ID') filled.push(await someId(words[0] ?? '', side))
    else if (word === '@FILE') filled.push(`@${await bodyFile(command, words, side)}`)
    else if (word === 'password.txt') filled.push(join(side.files, word))
    else if (word === 'ca.pem') filled.push(join(side.files, word))
    else if (word === '@certificate.pem') filled.push(`@${join(side.files, 'certificate.pem')}`)
    else filled.push(word)
  }
  return filled
}

/** The id of the newest record of a kind that has no names; of built-in ones only where there are no others. */
async function someId(noun: string, side: Side): Promise<string> {
  const verb = commands[`${noun}:list`] ? 'list' : 'authenticators'
  const { stdout } = await runOn(side, [noun, verb, '-o', 'json'])
  const { items } = JSON.parse(stdout || '{"items":[]}') as { items: { id: string }[] }
  const ids = items.map(({ id }) => String(id)).sort()
  return ids.filter((id) => /^[0-9A-Z]{26}$/.test(id)).at(-1) ?? ids.at(-1) ?? 'nothing'
}

/** A file with the record as it is, which replaces it by itself. */
async function bodyFile({ id }: Command.Cached, words: readonly string[], side: Side): Promise<string> {
  const file = join(side.files, 'body')
  if (!id.endsWith(':replace')) {
    writeFileSync(file, 'no certificate')
    return file
  }
  const [noun = '', , name = ''] = words
  const view = await runOn(side, [noun, 'get', name === 'ID' ? await someId(noun, side) : name, '-o', 'json'])
  writeFileSync(file, view.stdout)
  return file
}

/** A result without what differs from one controller to the next: ids, times, tokens, and where it is. */
function comparable({ code, stdout, stderr }: Finished) {
  const placeholders = new Map<string, string>()
  const replaced = (text: string) =>
    text
      .replace(/https:\/\/127\.0\.0\.1:\d+(?=: )/g, 'TARGET')
      .replace(/\/\S+\/data(?=: )/g, 'TARGET')
      // The command of a hint chooses the controller as the failed one did.
      .replace(/ (?:--controller|--offline --data-dir) \S+$/gm, ' WHERE')
      .replace(/\b[\w-]{20,}\.[\w-]{20,}\.[\w-]{20,}\b/g, 'JWT')
      .replace(/\bectl_[\w-]{43}/g, 'TOKEN')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replace(/\bin \d+ (?:second|minute|hour|day)s?\b/g, 'SPAN')
      .replace(/\b[0-9A-Z]{6}-[0-9a-z]+\b/g, 'REQUEST')
      .replace(/\b(?:[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/g, (id) => {
        const placeholder = placeholders.get(id) ?? `ID${placeholders.size}`
        placeholders.set(id, placeholder)
        return placeholder
      })
      // Nothing is connected here; offline this is unknown: test/cli/offline.test.ts.
      .replace(/\bunknown\b/g, 'no')
      .replace(
        /"(isOnline|hasEdgeRouterConnection|edgeRouterConnectionStatus)": (null|false|"no"|"offline")/g,
        '"$1": LIVE',
      )
      .replace(/ +/g, ' ')
      // Counts and versions of connected routers are not known offline.
      .replace(/ no ((?:- )*)- (?:0 0|- -) /g, ' no $1- - - ')
      .replace(/"(linkCount|circuitCount|controllers)": (?:null|0|\[\])/g, '"$1": LIVE')
      // A person on the machine of the controller is not an identity.
      .replace(/"ownerId": (?:null|"ID\d+")/g, '"ownerId": OWNER')
      // The two sides are different builds here: one runs from the sources.
      .replace(/\b(revision|build date) \S+/g, '$1 BUILD')
  return { code, stdout: replaced(stdout), stderr: replaced(stderr) }
}
