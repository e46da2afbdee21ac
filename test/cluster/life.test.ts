// The life of a cluster: a controller that was alone begins it, others join with new directories, and each can leave.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { beginCluster } from '../../server/cluster/begin-cluster.ts'
import { reviewSettings } from '../../server/cluster/cluster-settings.ts'
import { joinCluster } from '../../server/cluster/join-cluster.ts'
import { leaveCluster } from '../../server/cluster/leave-cluster.ts'
import { rotateKeys } from '../../src/rotate-keys.ts'
import { readConfig } from '../../src/settings/config.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { editConfigFile } from '../../src/settings/edit-config-file.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { copyOfTemplate, MANAGEMENT, TestClock, type TestController, testController } from '../world/controller.ts'
import { TestPostgres } from '../world/postgres.ts'

const SERVED = { listeners: [{ address: '127.0.0.1:0', apis: ['client', 'management'], dialect: 'native' }] }

let server: TestPostgres
let url: string
let folder: string
let directories: string[]
let opened: TestController[]

beforeAll(async () => {
  server = await TestPostgres.start()
}, 60_000)
afterAll(() => server?.stop())
beforeEach(async () => {
  url = await server.createDatabase()
  folder = mkdtempSync(join(tmpdir(), 'cluster-'))
  opened = []
  directories = [folder]
})
afterEach(async () => {
  for (const node of opened) await node.close()
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

const common = { env: {}, clock: new TestClock(), osUser: 'operator' }
const place = (name: string) => ({ 'cluster.database': url, 'cluster.name': name, 'cluster.tls': false })

async function open(directory: string, settings = {}): Promise<TestController> {
  const node = await testController({ directory, settings: { ...SERVED, ...settings } })
  opened.push(node)
  return node
}

async function stop(node: TestController): Promise<void> {
  opened.splice(opened.indexOf(node), 1)
  await node.stop()
}

/** The directory of a controller that is alone. */
function newDirectory(): string {
  const directory = copyOfTemplate()
  directories.push(directory)
  return directory
}

async function begin(name = 'one'): Promise<string> {
  const directory = newDirectory()
  await beginCluster({ ...common, directory, settings: place(name) })
  return directory
}

async function addNode(first: string, name: string): Promise<string> {
  const directory = join(folder, name)
  const settings = { ...place(name), advertise: [`${name}.example:1280`] }
  await joinCluster({ ...common, directory, settings, clusterKeyFile: getDataPaths(first).clusterKey })
  return directory
}

const readName = async ({ send }: TestController, id: string, token: string) =>
  (await send({ method: 'GET', path: `${MANAGEMENT}/identities/${id}`, token })).body?.data?.name

describe('a directory that begins a cluster', () => {
  it('serves on with what it held, by a key that only its account can read', async () => {
    const directory = newDirectory()
    const before = await open(directory)
    const { id, token } = await before.signIn({ name: 'made alone', isAdmin: true })
    await stop(before)
    await beginCluster({ ...common, directory, settings: place('one') })
    const { clusterKey } = getDataPaths(directory)
    expect([statSync(clusterKey).mode & 0o777, statSync(clusterKey).size]).toEqual([0o600, 32])
    const node = await open(directory)
    expect(node.controller.cluster?.name).toBe('one')
    expect(await readName(node, id, token)).toBe('made alone')
  })

  it("keeps the lines of the operator's settings", async () => {
    const directory = newDirectory()
    const { config } = getDataPaths(directory)
    writeFileSync(config, `# mine\nsession:\n  timeout: 20m # short\nlog: { level: warn }\n`)
    await beginCluster({ ...common, directory, settings: place('one') })
    const lines = readFileSync(config, 'utf8')
    expect(lines).toContain('# mine\nsession:\n  timeout: 20m # short\nlog: { level: warn }\n')
    expect(readConfig(config)['cluster.name']).toBe('one')
  })

  it('is refused while it is of a cluster already', async () => {
    const directory = await begin()
    await expect(beginCluster({ ...common, directory, settings: place('one') })).rejects.toThrow(
      'is that of a controller in a cluster',
    )
  })

  it('is refused by the database of another network, and serves alone then', async () => {
    await begin()
    const other = newDirectory()
    await expect(beginCluster({ ...common, directory: other, settings: place('other') })).rejects.toThrow(
      'the database has the log of a network',
    )
    expect((await open(other)).controller.cluster).toBeUndefined()
  })

  it('goes on where it was interrupted before its settings were written', async () => {
    const directory = await begin()
    const { config } = getDataPaths(directory)
    editConfigFile(config, { 'cluster.database': undefined, 'cluster.name': undefined, 'cluster.tls': undefined })
    expect(readConfig(config)['cluster.database']).toBeUndefined()
    await beginCluster({ ...common, directory, settings: place('one') })
    expect((await open(directory)).controller.cluster?.name).toBe('one')
  })

  it('is told what to do if it has served alone since it was interrupted', async () => {
    const directory = await begin()
    const { config } = getDataPaths(directory)
    editConfigFile(config, { 'cluster.database': undefined, 'cluster.name': undefined, 'cluster.tls': undefined })
    const alone = await open(directory)
    await alone.signIn({ name: 'made alone' })
    await stop(alone)
    await expect(beginCluster({ ...common, directory, settings: place('one') })).rejects.toMatchObject({
      code: 'LOG_OUTDATED',
      remedy: expect.stringContaining('drop schema controller cascade'),
    })
  })
})

describe('a directory that joins a cluster', () => {
  it('has the records and keys of the others, and its own name in the certificate', async () => {
    const first = await begin()
    const one = await open(first)
    const { id, token } = await one.signIn({ name: 'made at one', isAdmin: true })
    const second = await addNode(first, 'two')
    const two = await open(second, { advertise: ['two.example:1280'] })
    expect(await readName(two, id, token)).toBe('made at one')
    for (const name of ['token.key', 'audit.key', 'secrets.key', 'pki/root.key', 'pki/server.key', 'pki/server.crt'])
      expect(readFileSync(join(second, name)), name).toEqual(readFileSync(join(first, name)))
    expect(one.controller.authority.server.certificate.checkHost('two.example')).toBe('two.example')
    expect(statSync(join(second, 'secrets.key')).mode & 0o777).toBe(0o600)
  })

  it('gets the settings on which the network agrees', async () => {
    const first = newDirectory()
    editConfigFile(getDataPaths(first).config, { 'session.timeout': '20m' })
    await beginCluster({ ...common, directory: first, settings: place('one') })
    const second = await addNode(first, 'two')
    expect(readConfig(getDataPaths(second).config)['session.timeout']).toBe(20 * 60_000)
  })

  it('is refused with a wrong key, and is not a data directory then', async () => {
    await begin()
    const key = join(folder, 'wrong.key')
    writeFileSync(key, Buffer.alloc(32, 1))
    const directory = join(folder, 'two')
    await expect(joinCluster({ ...common, directory, settings: place('two'), clusterKeyFile: key })).rejects.toThrow(
      'the cluster key is not that of the log',
    )
    expect(existsSync(getDataPaths(directory).config)).toBe(false)
  })

  it('is refused a name that a running controller has', async () => {
    const first = await begin()
    await open(first)
    const directory = join(folder, 'two')
    const clusterKeyFile = getDataPaths(first).clusterKey
    await expect(joinCluster({ ...common, directory, settings: place('one'), clusterKeyFile })).rejects.toThrow(
      'another controller runs under the name one',
    )
  })

  it('is refused if the directory holds the database of a controller that is alone', async () => {
    const first = await begin()
    const directory = newDirectory()
    rmSync(getDataPaths(directory).config, { force: true })
    const clusterKeyFile = getDataPaths(first).clusterKey
    await expect(joinCluster({ ...common, directory, settings: place('two'), clusterKeyFile })).rejects.toMatchObject({
      code: 'NOT_EMPTY',
    })
  })
})

describe('settings on which the network agrees', () => {
  it('keep a controller from starting that has others, until it has them, or all get its own', async () => {
    const first = await begin()
    const { config } = getDataPaths(first)
    editConfigFile(config, { 'session.timeout': '1h' })
    await expect(open(first)).rejects.toThrow(
      /session\.timeout .*is 1h here, and 30m for the controllers of the network/,
    )
    const options = { ...common, directory: first }
    expect((await reviewSettings({ ...options, isAccepted: false })).differences).toEqual([
      { key: 'session.timeout', own: '1h', shared: '30m' },
    ])
    await reviewSettings({ ...options, isAccepted: true })
    expect((await open(first)).controller.config['session.timeout']).toBe(3_600_000)
  })

  it('are compared by their meaning', async () => {
    const first = await begin()
    editConfigFile(getDataPaths(first).config, { 'session.timeout': '1800s' })
    expect((await open(first)).controller.cluster?.name).toBe('one')
  })
})

describe('new keys of secrets and of session tokens', () => {
  const rotation = { ...common, hasSessions: true }

  it('are those of all controllers once they start again', async () => {
    const first = await begin()
    const second = await addNode(first, 'two')
    await rotateKeys({ ...rotation, directory: second })
    const one = await open(first)
    for (const name of ['secrets.key', 'token.key'])
      expect(readFileSync(join(first, name)), name).toEqual(readFileSync(join(second, name)))
    expect(existsSync(join(first, 'secrets.key.previous'))).toBe(false)
    expect(one.controller.ticketKeys.current).toHaveLength(48)
  })

  it('are refused while another controller runs, which would go on with the former ones', async () => {
    const first = await begin()
    const second = await addNode(first, 'two')
    await open(first)
    await expect(rotateKeys({ ...rotation, directory: second })).rejects.toMatchObject({ code: 'OTHER_CONTROLLERS' })
  })
})

describe('TLS sessions', () => {
  it('are resumed at another controller, and their API sessions are used there', async () => {
    const first = await begin()
    const second = await addNode(first, 'two')
    const [one, two] = [await open(first), await open(second, { advertise: ['two.example:1280'] })]
    await one.controller.ticketKeys.renewDue(one.system)
    await two.controller.store.catchUp()
    expect(two.controller.ticketKeys.current).toEqual(one.controller.ticketKeys.current)
    const session = await handshake((await one.listen()).addresses[0] as string)
    const { isReused } = await handshake((await two.listen()).addresses[0] as string, session.ticket)
    expect([session.isReused, isReused]).toEqual([false, true])
  })
})

/** Makes a TLS 1.2 connection, which has its ticket once it is established. */
function handshake(address: string, ticket?: Buffer): Promise<{ isReused: boolean; ticket: Buffer | undefined }> {
  const [host, port] = address.split(':')
  const options = { host, port: Number(port), rejectUnauthorized: false, maxVersion: 'TLSv1.2' } as const
  return new Promise((resolve, reject) => {
    const socket = connect({ ...options, ...(ticket ? { session: ticket } : {}) }, () => {
      resolve({ isReused: socket.isSessionReused(), ticket: socket.getSession() })
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

describe('a directory that leaves its cluster', () => {
  it('serves alone with what was committed by then, while the others go on', async () => {
    const first = await begin()
    const second = await addNode(first, 'two')
    const one = await open(first)
    const { id, token } = await one.signIn({ name: 'made at one', isAdmin: true })
    await leaveCluster({ ...common, directory: second, isLast: false, isDatabaseLost: false })
    expect(existsSync(getDataPaths(second).clusterKey)).toBe(false)
    await one.controller.cluster?.nodes.refresh()
    expect(one.controller.cluster?.nodes.list().map(({ name }) => name)).toEqual(['one'])
    const alone = await open(second)
    expect(alone.controller.cluster).toBeUndefined()
    expect(await readName(alone, id, token)).toBe('made at one')
    await alone.controller.membership.announce(alone.system, {})
    const records = await alone.system.db.selectFrom('controllers').select('node').execute()
    expect(records).toEqual([{ node: null }])
    expect(await readName(one, id, token)).toBe('made at one')
  })

  it('serves alone although the database and the key are lost', async () => {
    const first = await begin()
    const one = await open(first)
    const { id, token } = await one.signIn({ name: 'made at one', isAdmin: true })
    await stop(one)
    rmSync(getDataPaths(first).clusterKey)
    await expect(open(first)).rejects.toThrow('cluster.key is missing')
    await leaveCluster({ ...common, directory: first, isLast: false, isDatabaseLost: true })
    expect(await readName(await open(first), id, token)).toBe('made at one')
  })

  it('can begin another cluster', async () => {
    const first = await begin()
    await leaveCluster({ ...common, directory: first, isLast: true, isDatabaseLost: false })
    await beginCluster({ ...common, directory: first, settings: place('one') })
    expect((await open(first)).controller.cluster?.name).toBe('one')
  })

  it('is refused to delete the log while others use it', async () => {
    const first = await begin()
    const second = await addNode(first, 'two')
    const two = await open(second)
    await two.controller.membership.announce(two.system, {})
    await expect(
      leaveCluster({ ...common, directory: first, isLast: true, isDatabaseLost: false }),
    ).rejects.toMatchObject({
      code: 'OTHER_CONTROLLERS',
      remedy: expect.stringContaining('controller node delete NAME'),
    })
  })

  it('is asked to confirm only if it may delete the log', async () => {
    const first = await begin()
    const second = await addNode(first, 'two')
    for (const directory of [first, second]) {
      const node = await open(directory)
      await node.controller.membership.announce(node.system, {})
      await stop(node)
    }
    const leave = () => commandLine(['cluster', 'leave', '--drop-log', '--data-dir', first], cleanEnvironment())
    expect((await leave()).stderr).toContain('the log is in use by two')

    await leaveCluster({ ...common, directory: second, isLast: false, isDatabaseLost: false })
    expect((await leave()).stderr).toContain('--yes')
    expect(existsSync(getDataPaths(first).clusterKey)).toBe(true)
  })
})
