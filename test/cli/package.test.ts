// The package as npm installs it: what is in it, and that it works with its own dependencies only.
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SQLITE_LIBRARY } from '../../src/settings/native-libraries.ts'
import { cleanEnvironment, run, type Served, serve } from '../world/binary.ts'
import { findFreePort } from '../world/free-port.ts'

const root = join(import.meta.dirname, '../..')
const home = mkdtempSync(join(tmpdir(), 'package-'))
const installed = join(home, 'lib', 'node_modules', 'edge-controller')
const binary = join(installed, 'bin', 'run.js')
const env = cleanEnvironment(home)
const data = join(home, 'data')
let packed: string
let served: Served

/** Packs what is built. @returns the path of the file in the folder */
function pack(folder: string): string {
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]
  const name = execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  return join(folder, name)
}

/** Unpacks the package, with links to the packages that npm would install with it. */
function install(): void {
  mkdirSync(installed, { recursive: true })
  packed = pack(home)
  execFileSync('tar', ['-xzf', packed, '-C', installed, '--strip-components=1'])
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean; optional?: boolean }>
  }
  for (const [path, { dev, devOptional, optional }] of Object.entries(lock.packages)) {
    const isOwn = /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path)
    if (!isOwn || dev || devOptional || (optional && !existsSync(join(root, path)))) continue
    mkdirSync(dirname(join(installed, path)), { recursive: true })
    symlinkSync(join(root, path), join(installed, path))
  }
}

const listFiles = () =>
  readdirSync(installed, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(installed.length + 1))
    // Node.js 22 lists the folders that links lead to.
    .filter((path) => !path.startsWith('node_modules/'))

beforeAll(async () => {
  install()
  writeFileSync(join(home, 'password'), 'correct horse battery\n')
})
afterAll(() => served?.stop())

const cli = (...args: string[]) => run(process.execPath, [binary, ...args], env)

describe('the package', () => {
  it('has the built program, its manifest, its documents and the files for operators, and nothing else', () => {
    const others = listFiles().filter(
      (path) =>
        !/^(bin\/(controller|run\.js|openssl\.cnf)|dist\/cli\/.+\.js|dist\/(api|build|topics)\.json)$/.test(path) &&
        !/^docs\/([\w-]+\/)?[\w-]+\.md$|^docs\/operations\/(edge-controller\.service|Dockerfile(\.dockerignore)?|compose\.yaml|grafana-dashboard\.json|prometheus-rules\.yaml)$/.test(
          path,
        ) &&
        !['oclif.manifest.json', 'package.json', 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE'].includes(path),
    )

    expect(others).toEqual([])
  })

  it('has the documents and files that its texts name', () => {
    const files = listFiles()

    expect(files).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'README.md',
        'CHANGELOG.md',
        'SECURITY.md',
        'docs/end-users.md',
        'docs/operations/Dockerfile',
        'docs/operations/edge-controller.service',
      ]),
    )
    for (const document of files.filter((path) => path.endsWith('.md'))) {
      const text = readFileSync(join(installed, document), 'utf8')
      for (const [, target = ''] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
        expect(files, `${document} names ${target}`).toContain(join(dirname(document), target))
      }
    }
  })

  it('is the same file if it is packed again', () => {
    const again = pack(mkdtempSync(join(home, 'again-')))

    expect(readFileSync(again).equals(readFileSync(packed))).toBe(true)
  }, 90_000)

  it('has the documents that its messages name', () => {
    const files = listFiles()
    const texts = files.filter((path) => /^(?:dist\/cli\/.+\.js|dist\/api\.json|oclif\.manifest\.json)$/.test(path))
    const names = texts.flatMap((path) => [
      ...readFileSync(join(installed, path), 'utf8').matchAll(/\bdocs\/[\w/-]+\.(?:md|yaml|json|service)\b/g),
    ])

    expect(names.length).toBeGreaterThan(0)
    expect([...new Set(names.map(([name]) => name))].filter((name) => !files.includes(name))).toEqual([])
  })

  it('has a changelog whose newest section is about its version, or about one that is to come', () => {
    const { version } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    const changelog = readFileSync(join(installed, 'CHANGELOG.md'), 'utf8')
    const [, newest, state] = /^## (\d+\.\d+\.\d+) \((not released yet|\d{4}-\d\d-\d\d)\)$/m.exec(changelog) ?? []

    expect(newest).toBeDefined()
    if (state !== 'not released yet') expect(newest).toBe(version)
  })

  it('says its version', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

    expect((await cli('--version')).stdout).toContain(version)
  })

  it('creates a data directory, serves it, and signs in to it', async () => {
    const listen = `127.0.0.1:${await findFreePort()}`
    const admin = ['--admin-username', 'admin', '--admin-password-file', join(home, 'password')]
    const init = await cli('init', '--data-dir', data, '--listen', listen, ...admin)
    expect([init.code, init.stderr]).toEqual([0, ''])

    served = await serve(['--data-dir', data], env, { binary })
    const login = await cli(
      'login',
      served.url,
      '--username',
      'admin',
      '--password-file',
      join(home, 'password'),
      '--yes',
    )
    const create = await cli('identity', 'create', 'laptop', '--role', 'staff')
    const list = await cli('identity', 'list', '-o', 'name')

    expect([login.code, create.code, list.code]).toEqual([0, 0, 0])
    expect(list.stdout).toContain('laptop')
    expect(await served.stop()).toBe(0)
  }, 90_000)

  it('serves metrics, a console and a log as text, whose libraries are loaded on demand', async () => {
    const consoleDirectory = mkdtempSync(join(home, 'console-'))
    writeFileSync(join(consoleDirectory, 'index.html'), '<!doctype html>')
    const [port, monitoringPort] = [await findFreePort(), await findFreePort()]
    const listeners = [
      { address: `127.0.0.1:${port}` },
      { address: `127.0.0.1:${monitoringPort}`, apis: ['health', 'metrics'], tls: false },
    ]
    served = await serve(
      ['--data-dir', data],
      {
        ...env,
        CONTROLLER_LISTENERS: JSON.stringify(listeners),
        CONTROLLER_CONSOLE_DIRECTORY: consoleDirectory,
        CONTROLLER_LOG_FORMAT: 'text',
      },
      { binary },
    )
    const monitoring = `http://127.0.0.1:${monitoringPort}`

    expect((await fetch(`${monitoring}/health`)).status).toBe(200)
    expect(await (await fetch(`${monitoring}/metrics`)).text()).toContain('controller_build_info')
    expect(await served.stop()).toBe(0)
  })
})

describe('a clone that was not built', () => {
  it('says in one sentence how it is built', async () => {
    const clone = join(home, 'clone')
    mkdirSync(clone)
    cpSync(join(root, 'bin'), join(clone, 'bin'), { recursive: true })
    cpSync(join(root, 'package.json'), join(clone, 'package.json'))

    const { code, stdout, stderr } = await run(join(clone, 'bin', 'controller'), ['identity', 'list'], env)

    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toBe('this clone is not built yet\nTry: npm start, which builds and serves, or npm run build\n')
  })
})

describe('the systemd unit', () => {
  it('runs the launcher of this installation, by the Node.js that printed it', async () => {
    const { code, stdout, stderr } = await cli('systemd-unit')
    const path = realpathSync(installed)

    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`ExecStart="${join(path, 'bin', 'controller')}" serve --data-dir \${STATE_DIRECTORY}`)
    expect(stdout).toContain(`Environment="PATH=${dirname(process.execPath)}:`)
    expect(stdout).toContain(`Documentation=file://${path}/README.md`)
    expect(stdout).toMatch(/^ProtectSystem=strict$/m)
    expect(stdout).not.toContain('/usr/local/bin/controller')
  })
})

describe('the launcher', () => {
  const probe = join(home, 'probe.cjs')
  const link = join(home, 'controller')

  beforeAll(() => {
    const { bin } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    symlinkSync(join(installed, bin.controller), link)
    writeFileSync(
      probe,
      'const { execArgv, ppid, env } = process; console.log(JSON.stringify({ execArgv, ppid, tunables: env.GLIBC_TUNABLES }))',
    )
  })

  const launch = (args: string[], more: NodeJS.ProcessEnv = {}) => run(link, args, { ...env, ...more })
  const observe = async (more: NodeJS.ProcessEnv = {}) =>
    JSON.parse(
      (await launch(['--version'], { NODE_OPTIONS: `--require=${probe}`, ...more })).stdout.split('\n')[0] ?? '',
    )

  it('passes arguments and exit codes on, also through the link that npm makes', async () => {
    expect((await launch(['--version'])).stdout).toMatch(/^controller\//)
    expect((await launch(['identity', 'no such command'])).code).toBe(2)
  })

  it('is replaced by Node.js, with settings that return memory and leave it the core', async () => {
    const { ppid, execArgv, tunables } = await observe()

    expect(ppid).toBe(process.pid)
    expect(execArgv).toEqual(['--max-semi-space-size=8', '--v8-pool-size=1'])
    expect(tunables).toContain('glibc.malloc.mmap_threshold=')
  })

  it('leaves settings of the memory allocator that it finds', async () => {
    expect((await observe({ GLIBC_TUNABLES: 'glibc.malloc.arena_max=1' })).tunables).toBe('glibc.malloc.arena_max=1')
    expect((await observe({ GLIBC_TUNABLES: '' })).tunables).toBe('')
  })

  it('is what `npm start`, the unit and the image run', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const read = (name: string) => readFileSync(join(root, 'docs', 'operations', name), 'utf8')

    expect(scripts.start).toMatch(/^bin\/controller serve /)
    expect(read('edge-controller.service')).toMatch(/^ExecStart=\S+\/controller serve /m)
    expect(read('Dockerfile')).toContain('/bin/controller /usr/local/bin/controller')
  })
})

describe('an installation whose install scripts did not run', () => {
  it('names the command that builds the native module, which npm also leaves out with its library', async () => {
    const module = join(installed, 'node_modules', SQLITE_LIBRARY)
    const source = realpathSync(module)
    const nativeFolders = ['build', 'prebuilds'].map((name) => join(source, name))
    const remedy = SQLITE_LIBRARY === 'better-sqlite3' ? /npm run build-release/ : /--allow-scripts=better-sqlite3\s/
    const expectRefusal = async (command: string) => {
      const { code, stderr } = await cli(command, '--data-dir', join(home, 'other'), '--listen', '127.0.0.1:0')
      expect(code).toBe(1)
      expect(stderr).toMatch(/native module of better-sqlite3(-12)? is missing/)
      expect(stderr).toMatch(remedy)
      expect(existsSync(join(home, 'other'))).toBe(false)
    }

    rmSync(module)
    for (const command of ['init', 'serve']) await expectRefusal(command)
    cpSync(source, module, { recursive: true, filter: (path) => !nativeFolders.includes(path) })
    for (const command of ['init', 'serve']) await expectRefusal(command)
    rmSync(module, { recursive: true })
    symlinkSync(source, module)
  })

  it('creates no data directory if loading a native module ends the process', async () => {
    const module = join(installed, 'node_modules', 'argon2')
    rmSync(module)
    mkdirSync(module)
    writeFileSync(join(module, 'index.js'), "process.kill(process.pid, 'SIGSEGV')")

    for (const command of ['init', 'serve']) {
      const { code, stderr } = await cli(command, '--data-dir', join(home, 'other'), '--listen', '127.0.0.1:0')

      expect(code).toBe(1)
      expect(stderr).toMatch(/native module of argon2 is missing, or was built for another version of Node\.js/)
      expect(stderr).toMatch(/npm rebuild argon2/)
      expect(existsSync(join(home, 'other'))).toBe(false)
    }
  })
})

describe('the files for operators', () => {
  const QUIET = { cwd: root, stdio: 'ignore' } as const
  const read = (name: string) => readFileSync(join(root, 'docs', 'operations', name), 'utf8')

  it('name settings and commands that exist', async () => {
    const { settingDocs, toVariableName } = await import('../../src/settings/settings.ts')
    const variables = [...settingDocs.map(({ key }) => toVariableName(key)), 'CONTROLLER_DATA_DIR']
    const texts = ['Dockerfile', 'edge-controller.service'].map(read).join('\n')

    for (const [variable] of texts.matchAll(/CONTROLLER_[A-Z_]+/g)) expect(variables).toContain(variable)
    expect(texts).toContain('serve --data-dir')
  })

  it('leave out nothing that the build of the image imports', () => {
    const ignored = new Set(read('Dockerfile.dockerignore').split('\n'))
    const folder = join(home, 'image')
    for (const name of readdirSync(root))
      if (!ignored.has(name)) cpSync(join(root, name), join(folder, name), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))

    execFileSync(process.execPath, [join(folder, '.ci', 'bundle.mjs')], { stdio: ['ignore', 'ignore', 'pipe'] })

    expect(existsSync(join(folder, 'dist', 'cli', 'main.js'))).toBe(true)
  })

  it('make the folder that the package is written to, which npm does not', () => {
    expect(() =>
      execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', join(home, 'none')], QUIET),
    ).toThrow()
    expect(read('Dockerfile')).toMatch(/ mkdir \/package && npm pack .*--pack-destination \/package$/m)
  })

  it('run the controller without privileges', () => {
    expect(read('Dockerfile')).toMatch(/^USER node$/m)
    expect(read('edge-controller.service')).toMatch(/^NoNewPrivileges=yes$/m)
    expect(read('edge-controller.service')).toMatch(/^ProtectSystem=strict$/m)
    expect(read('edge-controller.service')).not.toMatch(/^MemoryDenyWriteExecute=yes$/m)
  })

  it('describe a health check that the configured listener serves', async () => {
    const { readConfig } = await import('../../src/settings/config.ts')
    const [, listeners = ''] = /^ENV CONTROLLER_LISTENERS="(.+)"$/m.exec(read('Dockerfile')) ?? []
    const { listeners: parsed } = readConfig(undefined, {
      CONTROLLER_LISTENERS: listeners,
      CONTROLLER_ADVERTISE: '[controller.example.com:1280]',
    })

    expect(parsed[1]).toMatchObject({ address: '127.0.0.1:1281', apis: ['health'], tls: false })
    expect(read('Dockerfile')).toContain('http://127.0.0.1:1281/health')
  })
})
