// Settings: where they come from, which of them wins, and what is refused.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readConfig } from '../src/settings/config.ts'
import { renderConfigReference } from '../src/settings/config-reference.ts'
import { renderConfigFile } from '../src/settings/render-config.ts'
import type { ConfigError } from '../src/settings/setting-types.ts'
import { settingDocs, toVariableName } from '../src/settings/settings.ts'

function fileWith(text: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'config-')), 'config.yaml')
  writeFileSync(file, text)
  return file
}

describe('the file that a new data directory gets', () => {
  it('explains every setting, and says nothing but the defaults', () => {
    const text = renderConfigFile()

    expect(readConfig(fileWith(text))).toEqual(readConfig(undefined))
    for (const { key } of settingDocs) expect(text).toMatch(new RegExp(`# ${key.split('.').at(-1)}:[ \\n]`))
  })

  it('is read the same way when every comment sign before a value is taken away', () => {
    const uncommented = renderConfigFile().replace(/^( *)# (\w+: \S.*)$/gm, '$1$2')

    expect(Object.keys(parse(uncommented)).length).toBeGreaterThan(5)
    expect(readConfig(fileWith(uncommented))).toEqual(readConfig(undefined))
  })

  it('writes listeners as a list of YAML, one member to a line', () => {
    const listeners = [{ address: '127.0.0.1:1', apis: ['client', 'management'], dialect: 'openziti' }]

    const text = renderConfigFile({ listeners })

    expect(text).toContain(
      'listeners:\n  - address: 127.0.0.1:1\n    apis: [client, management]\n    dialect: openziti\n',
    )
    expect(readConfig(fileWith(text)).listeners).toMatchObject(listeners)
  })

  it('keeps what it was made with', () => {
    const values = { 'session.timeout': '10m', advertise: ['controller.example.com:1280'], 'limits.passwordQueue': 7 }

    expect(readConfig(fileWith(renderConfigFile(values)))).toEqual(readConfig(undefined, {}, values))
  })

  it.each(['1e5', '0x10', '1.0', '51e123456789', '007', 'true', 'null', 'one'])('keeps the name %s as text', (name) => {
    const text = renderConfigFile({ 'cluster.name': name })

    expect(readConfig(fileWith(text))['cluster.name']).toBe(name)
  })
})

describe('a setting', () => {
  it('comes from a flag, else the environment, else the file, else its default', () => {
    const file = fileWith('session:\n  timeout: 2m\n')
    const env = { CONTROLLER_SESSION_TIMEOUT: '3m' }
    const timeout = (...from: Parameters<typeof readConfig>) => readConfig(...from)['session.timeout'] / 60_000

    expect(timeout(undefined)).toBe(30)
    expect(timeout(file)).toBe(2)
    expect(timeout(file, env)).toBe(3)
    expect(timeout(file, env, { 'session.timeout': '4m' })).toBe(4)
  })

  it.each(settingDocs.map(({ key }) => [key]))('%s stands in the reference, with its variable', (key) => {
    const section = renderConfigReference()
      .split('\n## ')
      .find((text) => text.startsWith(`${key}\n`))

    expect(section).toContain(toVariableName(key))
  })

  it.each([
    ['that does not exist', 'sesion: 5\n', 'sesion'],
    ['that does not exist in its group', 'session:\n  timeot: 5m\n', 'session.timeot'],
    ['that is not a duration', 'session:\n  timeout: 5\n', 'session.timeout'],
    ['below what it must be', 'session:\n  timeout: 5s\n', 'session.timeout'],
    ['that is not a size', 'limits:\n  body: large\n', 'limits.body'],
    ['that is not a count', 'limits:\n  connections: 0\n', 'limits.connections'],
    ['that is not an address', 'advertise: [nowhere]\n', 'advertise'],
    ['that is none of the choices', 'log:\n  level: loud\n', 'log.level'],
    ['that is not an origin', 'cors:\n  origins: [https://example.com/path]\n', 'cors.origins'],
    ['that allows every origin', "cors:\n  origins: ['*']\n", 'cors.origins'],
    ['that is not a directory', 'console:\n  directory: relative\n', 'console.directory'],
    ['that is not a policy', 'console:\n  contentSecurityPolicy: 5\n', 'console.contentSecurityPolicy'],
    ['that is not a list', 'listeners: 127.0.0.1:1280\n', 'listeners'],
    ['that takes sign-ins without TLS', "listeners: [{ address: '127.0.0.1:1', tls: false }]\n", 'listeners'],
    [
      'that shows metrics to the network without TLS',
      "listeners: [{ address: 'localhost:1' }, { address: '192.0.2.1:2', apis: [metrics], tls: false }]\n",
      'listeners',
    ],
    [
      'that serves no client with TLS',
      "listeners: [{ address: '127.0.0.1:1', apis: [health], tls: false }]\n",
      'listeners',
    ],
    ['that listens nowhere', 'listeners: []\n', 'listeners'],
    ['that clients cannot reach', "listeners: [{ address: '0.0.0.0:1280' }]\n", 'advertise'],
    ['that clients cannot reach, of IPv6', "listeners: [{ address: '[::]:1280' }]\n", 'advertise'],
    ['that clients cannot reach, written in full', "listeners: [{ address: '[0:0:0:0:0:0:0:0]:1280' }]\n", 'advertise'],
    ['that keeps the audit for less than a day', 'audit:\n  retention: 1h\n', 'audit.retention'],
    ['that has a text that YAML reads as an alias', 'cors:\n  origins: [*.example.com]\n', 'cors.origins'],
    ['that has no port', "advertise: ['controller.example.com:']\n", 'advertise'],
    ['that has a port in hexadecimal', "advertise: ['controller.example.com:0x50']\n", 'advertise'],
    ['that has a port with an exponent', "advertise: ['controller.example.com:1e3']\n", 'advertise'],
    ['that has a port behind a blank', "advertise: ['controller.example.com: 80']\n", 'advertise'],
    ['that has a port beyond the highest', "advertise: ['controller.example.com:65536']\n", 'advertise'],
    ['that names no port to clients', "advertise: ['controller.example.com:0']\n", 'advertise'],
    ['that names no port to routers', "control:\n  advertise: 'controller.example.com:0'\n", 'control.advertise'],
    ['that is a time of no zone', "adoption:\n  trialEnds: '2026-12-01T00:00:00'\n", 'adoption.trialEnds'],
    ['in a group that is none', 'session: 5\n', 'session'],
    ['in a file that holds no map', '- 5\n', 'file'],
    ['in a file that is not YAML', 'a: [\n', 'file'],
  ])('%s is refused by its name', (_what, text, key) => {
    expect.assertions(1)
    try {
      readConfig(fileWith(text))
    } catch (error) {
      expect((error as ConfigError).key).toBe(key)
    }
  })

  const messageOf = (text: string, env: NodeJS.ProcessEnv = {}): string => {
    try {
      readConfig(fileWith(text), env)
    } catch (error) {
      return (error as Error).message.replaceAll(/\/\S*\/([\w.-]+\.yaml)/g, '$1')
    }
    return ''
  }

  it('that a snippet of the documents repeats is refused with the lines of both places', () => {
    const text = renderConfigFile()
    const [first, second] = [
      text.split('\n').indexOf('session:') + 1,
      text.split('\n').length + (text.endsWith('\n') ? 0 : 1),
    ]

    const message = messageOf(`${text}${text.endsWith('\n') ? '' : '\n'}session:\n  timeout: 1h\n`)

    expect(message).toContain(`the setting session, in line ${second} of`)
    expect(message).toContain(`is also in line ${first}: uncomment what you need there`)
    expect(messageOf('session:\n  timeout: 1h\nsession.timeout: 2h\n')).toMatch(/in line 3 .*is also in line 2/)
    expect(messageOf("listeners:\n  - address: '127.0.0.1:1'\n    address: '127.0.0.1:2'\n")).toMatch(
      /address, in line 3 .*is also in line 2/,
    )
  })

  it('that is one of several choices comes with the choice that is most likely meant', () => {
    expect(messageOf('log:\n  level: infos\n')).toMatch(/must be one of .*silent: did you mean info\?/)
    expect(messageOf("listeners: [{ address: '127.0.0.1:1', apis: [metrcs] }]\n")).toMatch(/did you mean metrics\?/)
  })

  it('is refused together with what stands twice', () => {
    const message = messageOf('log:\n  level: loud\nsesion:\n  timeout: 1h\nlog:\n  format: text\n')

    expect(message).toMatch(/log, in line 5 .*is also in line 1/)
    expect(message).toContain('did you mean session?')
    expect(message).toMatch(/log\.level, in line 2 /)
  })

  it('that is not a list is refused with the form of one', () => {
    expect(messageOf('', { CONTROLLER_ADVERTISE: 'a.example:1' })).toMatch(
      /^the setting advertise, from the environment variable CONTROLLER_ADVERTISE, must be a list such as \[a\.example:1\]$/,
    )
    expect(messageOf('listeners: 127.0.0.1:1280\n')).toMatch(
      /must be a list such as \[\{address: 127\.0\.0\.1:1280\}\]$/,
    )
    expect(messageOf('advertise: {}\n')).toMatch(/must be a list$/)
  })

  it('that begins with an asterisk by mistake is refused with its line, and together with all others that are wrong', () => {
    expect(messageOf('log:\n  level: loud\ncors:\n  origins: [*.example.com]\n').split('\n')).toEqual([
      expect.stringMatching(
        /^the setting cors\.origins, in line 4 of \S+, .*; quote a text that begins with an asterisk/,
      ),
      expect.stringMatching(/^the setting log\.level, in line 2 /),
    ])
  })

  it('that has one address for two listeners is refused with the address', () => {
    const twice = (address: string) =>
      messageOf(`listeners:\n  - address: '${address}'\n    apis: [client]\n  - address: '${address}'\n`)

    expect(twice('127.0.0.1:1280')).toMatch(
      /^the setting listeners, in line 1 of \S+, has the address 127\.0\.0\.1:1280 twice: name all its APIs in one entry$/,
    )
    // Each gets a port of its own.
    expect(twice('127.0.0.1:0')).toBe('')
  })

  it('is named with the line of the file, or the environment variable, that it comes from', () => {
    expect(messageOf('log:\n  level: info\n\nsession:\n  timeout: 5\n')).toMatch(
      /^the setting session\.timeout, in line 5 of \S+, must be a duration/,
    )
    expect(messageOf('', { CONTROLLER_SESSION_TIMEOUT: 'soon' })).toMatch(
      /^the setting session\.timeout, from the environment variable CONTROLLER_SESSION_TIMEOUT, must be a duration/,
    )
    expect(messageOf('', { CONTROLLER_LISTENERS: '[{address' })).toMatch(
      /^the setting listeners, from the environment variable CONTROLLER_LISTENERS, is not YAML: /,
    )
    expect(messageOf('log:\n  level: info\na: [\n')).toMatch(/^the file of settings, in line \d of \S+, is not YAML: /)
  })

  it.each([
    ['session:\n  timeot: 5m\n', 'session.timeout'],
    ['sesion:\n  timeout: 5m\n', 'session'],
    ['advertize: []\n', 'advertise'],
    ['warnBefore: 20d\n', 'certificates.warnBefore'],
  ])('that does not exist is refused with the one that it resembles: %j', (text, meant) => {
    expect(messageOf(text)).toContain(`does not exist: did you mean ${meant}`)
  })

  it('is refused together with all others that are wrong', () => {
    const text = "sesion:\n  timeout: 5m\nlog:\n  level: loud\nlisteners:\n  - adress: '127.0.0.1:1'\n"

    const lines = messageOf(text, { CONTROLLER_SESSION_TIMEOUT: 'soon' }).split('\n')

    expect(lines.sort()).toEqual([
      expect.stringMatching(
        /^the setting listeners, in line 5 .* has a member that does not exist, adress: did you mean address\?/,
      ),
      expect.stringMatching(/^the setting log\.level, in line 4 /),
      expect.stringMatching(/^the setting sesion, in line 1 .* does not exist: did you mean session/),
      expect.stringMatching(
        /^the setting session\.timeout, from the environment variable CONTROLLER_SESSION_TIMEOUT, /,
      ),
    ])
  })

  it('is a duration, a size, a count or an address', () => {
    const config = readConfig(
      fileWith('audit:\n  retention: 365d\nlimits:\n  body: 2MiB\nsession:\n  timeout: 1h30m\n'),
    )

    expect(config['audit.retention']).toBe(365 * 86_400_000)
    expect(config['limits.body']).toBe(2 * 1024 * 1024)
    expect(config['session.timeout']).toBe(90 * 60_000)
  })
})
