// Runs the commands of one page in a folder of the page's own, against a controller of its own.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import type { Overrides } from '../../src/settings/settings.ts'
import { cleanEnvironment, type Finished, type Served, serve } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { ADMIN, type TestController, testController } from '../world/controller.ts'
import { findFreePort } from '../world/free-port.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { type DocumentCommand, listBlockCommands } from './document-commands.ts'
import type { WorkedPage } from './worked-pages.ts'

// Restored also if a command of a test that timed out is still running.
const workingDirectory = process.cwd()
const ALL_APIS = ['client', 'management', 'fabric', 'oidc', 'control', 'health']

export class PageRun {
  readonly folder = mkdtempSync(join(tmpdir(), 'page-'))
  readonly env: NodeJS.ProcessEnv = cleanEnvironment(this.folder)
  readonly #page: WorkedPage
  readonly #standIns = new Map<string, string>()
  readonly #opened: { close(): unknown }[] = []
  #world: TestController | undefined

  constructor(page: WorkedPage) {
    this.#page = page
  }

  /** The controller of the page. */
  get world(): TestController {
    if (!this.#world) throw new Error('the page has no controller in this process')
    return this.#world
  }

  async open(): Promise<void> {
    this.write('password.txt', `${ADMIN.password}\n`)
    for (const [path, place] of [
      ['/var/lib/edge-controller', 'data-of-the-page'],
      ['/mnt/backups', 'backups'],
      ['/etc/systemd/system', 'units'],
    ]) {
      this.replace(path as string, join(this.folder, place as string))
    }
    for (const folder of ['backups', 'units']) mkdirSync(join(this.folder, folder))
    this.replace('0.0.0.0:1280', `127.0.0.1:${await findFreePort()}`)
    if (this.#page.hasController !== false) await this.#openController()
    await this.#page.prepare?.(this)
  }

  async #openController(): Promise<void> {
    const address = `127.0.0.1:${await findFreePort()}`
    const listeners = [{ address, apis: ALL_APIS, dialect: 'native' }]
    const settings: Overrides = { listeners, advertise: [address], ...this.#page.settings }
    const world = await testController({ settings })
    this.#world = world
    this.closeLater(world)
    const { url, rootPem } = await world.listen()
    this.write('root.pem', rootPem)
    this.replace('https://controller.example.com:1280', url)
    this.env.CONTROLLER_DATA_DIR = world.directory
    writeProfiles(this.env, { test: { url, rootPem, token: (await People.in(world, 'operator')).token } })
  }

  /** Runs the commands of the quick start that make its network. */
  async makeNetworkOfQuickStart(): Promise<void> {
    const creations = listBlockCommands('README.md').filter(({ words: [, , verb] }) => verb === 'create')
    for (const command of creations) await this.expectDone(await this.#runController(command.words, command.outputFile))
  }

  /** Writes a file beside the page. */
  write(name: string, text: string): void {
    const path = join(this.folder, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }

  /** Uses a text of this machine in place of one that the page shows. */
  replace(shown: string, actual: string): void {
    this.#standIns.set(shown, actual)
  }

  closeLater(opened: { close(): unknown }): void {
    this.#opened.unshift(opened)
  }

  async close(): Promise<void> {
    for (const opened of this.#opened) await opened.close()
  }

  /** Runs a command of the controller that the page does not show. @returns its standard output */
  async run(...args: string[]): Promise<string> {
    return this.expectDone(await this.#runController(['controller', ...args]))
  }

  expectDone({ code, stdout, stderr }: Finished): string {
    expect(code, stderr).toBe(0)
    return stdout
  }

  /** Runs a command of the page, with what a person does before it and types at its prompts. */
  async runCommand({ text, words, outputFile }: DocumentCommand): Promise<Finished> {
    const { before = {}, typed = {} } = this.#page
    for (const line of before[text] ?? []) await this.run(...line.split(' '))
    return this.#runController([...words, ...(typed[text]?.split(' ') ?? [])], outputFile)
  }

  async #runController(words: readonly string[], outputFile?: string): Promise<Finished> {
    const actualWords = words.map((word) => this.#withStandIns(word))
    const [program = '', ...args] = actualWords
    if (program === 'export') {
      for (const assignment of args) {
        const [name = '', ...value] = assignment.split('=')
        this.env[name] = value.join('=')
      }
      return { code: 0, stdout: '', stderr: '' }
    }
    if (args[0] === 'serve') return this.serve(...args.slice(1))
    process.chdir(this.folder)
    try {
      const finished = await commandLine(args, this.env)
      if (outputFile !== undefined) writeFileSync(this.#withStandIns(outputFile), finished.stdout)
      return finished
    } finally {
      process.chdir(workingDirectory)
    }
  }

  /** Starts a controller, which runs until the end of the page. */
  async serve(...args: string[]): Promise<Finished & { served: Served }> {
    const served = await serve(
      args.map((arg, at) => (args[at - 1] === '--data-dir' ? join(this.folder, arg.replace(this.folder, '')) : arg)),
      this.env,
    )
    this.closeLater({ close: () => served.stop() })
    return { code: 0, stdout: served.announced, stderr: '', served }
  }

  #withStandIns(word: string): string {
    let actual = word
    for (const [shown, standIn] of this.#standIns) actual = actual.replaceAll(shown, standIn)
    return actual
  }
}
