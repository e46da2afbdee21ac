// `controller quickstart`: creates a network with an administrator, a router and an example, and serves it.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { Flags } from '@oclif/core'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { systemClock } from '../../src/foundation/clock.ts'
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import { createPrivateDirectory, writePrivateFile } from '../../src/pki/files.ts'
import { splitAddress } from '../../src/settings/setting-types.ts'
import type { Overrides } from '../../src/settings/settings.ts'
import { describeReplacement } from '../account/login-method.ts'
import { renderRouterConfiguration, toBindAddress } from '../api/edge-router/configuration.ts'
import { assertAddress, listRouterCommands, readControllerAddress } from '../api/edge-router/configuration-file.ts'
import { Client } from '../client/client.ts'
import { getUserName } from '../client/connection.ts'
import { explainOpenError, isDirectoryInitialized, openOffline } from '../client/data-directory.ts'
import { Profiles, toProfileName } from '../client/profiles.ts'
import { requestApiSession } from '../client/sign-in.ts'
import { optionalArgument } from '../framework/arguments.ts'
import { PrintingCommand } from '../framework/base.ts'
import { assertCredentials, promptUsername } from '../terminal/credentials.ts'
import { canPrompt, promptNewPassword } from '../terminal/prompts.ts'
import { networkFlags, readNetworkSettings } from './init.ts'
import { assertCanListen, serveDirectory } from './serve.ts'
import { assertFinished, markUnfinished } from './unfinished-mark.ts'

const DEFAULT_USERNAME = 'admin'
const ROUTER = 'edge-1'
const ROUTER_PORT = 3022
const DEVICE = 'laptop'
const SERVICE = 'hello'
const PROXY_PORT = 9000
const WHEN_LOCKED = 'wait until it has finished'

interface AdminCredentials {
  readonly username: string
  readonly password: string
  /** Whether it has to be shown, because no person chose it. */
  readonly isGenerated: boolean
}

export class Quickstart extends PrintingCommand {
  static override summary =
    'Creates a network with an administrator, a router and an example service, and runs its controller.'
  static override description = [
    'Everything is in one directory. The policies let all identities and services use the routers with the role public. The example is',
    `the service ${SERVICE}, which leads to the controller itself, and the identity ${DEVICE}, which may dial it. The router is another`,
    'program: the command prints how to start it. If the directory exists already, its controller runs, and nothing is created.',
  ].join('\n')
  static override args = {
    directory: optionalArgument({ description: 'Directory for all files. Default: quickstart.' }),
  }
  static override flags = {
    ...networkFlags,
    'router-advertise': Flags.string({
      description: `Address under which clients reach the router. Default: the host of the controller, with port ${ROUTER_PORT}.`,
      helpValue: 'HOST:PORT',
    }),
    'admin-username': Flags.string({ description: `Username of the administrator. Default: ${DEFAULT_USERNAME}.` }),
    'admin-password-file': Flags.string({
      description:
        'File with the password of the administrator; - is stdin. Without a terminal, the default is a random one.',
      helpValue: 'FILE',
    }),
  }
  static override examples = ['<%= config.bin %> <%= command.id %>']

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Quickstart)
    assertAddress('router-advertise', flags['router-advertise'])
    const home = resolve(args.directory ?? 'quickstart')
    const directory = join(home, 'data')
    const settings = readNetworkSettings(flags)
    assertFinished(home)
    if (await isDirectoryInitialized(directory)) {
      this.notice(`${home} exists already: nothing is created.`)
      return serveDirectory({ directory, settings, notice: (text) => this.notice(text) })
    }
    await assertRouterAddress(directory, settings)
    await assertCanListen(directory, settings)
    const administrator = await chooseCredentials(flags)
    const { initializeDirectory } = await import('../../src/initialize.ts')
    const finish = await prepareHome(home).catch(explainOpenError(home))
    await initializeDirectory({ directory, settings, clock: systemClock, administrator }).catch((error: Error) => {
      // The next one continues what is not complete.
      finish()
      explainOpenError(directory, WHEN_LOCKED)(error)
    })
    const files = await createNetwork(home, flags['router-advertise'])
    if (!administrator.isGenerated) finish()
    await serveDirectory({
      directory,
      settings: {},
      notice: (text) => this.notice(text),
      describe: async (url) => [
        ...describeAdministrator(administrator),
        ...(await this.#signIn(url, directory, administrator)),
        '',
        ...describeNextCommands(home, files),
      ],
      onAnnounced: finish,
    })
  }

  /** Signs in, so that the next commands need no login. If the address is not reachable from here, the command continues. */
  async #signIn(url: string, directory: string, { username, password }: AdminCredentials): Promise<string[]> {
    const rootPem = readFileSync(join(directory, 'pki', 'root.crt'), 'utf8')
    const transport = createHttpTransport({ url, rootPem })
    try {
      const { token } = await requestApiSession(transport, { method: 'password', username, password })
      const profiles = Profiles.open(process.env)
      const name = toProfileName(url)
      const profile = { url, rootPem, username, token, signedInAt: new Date().toISOString() }
      const replacement = describeReplacement(name, profiles.get(name), profile)
      profiles.save(name, profile)
      if (replacement !== undefined) this.notice(replacement)
      return [`Profile        ${name} (signed in)`]
    } catch (error) {
      return [`Profile        none, because ${(error as Error).message}: ${getProgram()} login ${url}`]
    } finally {
      await transport.close()
    }
  }
}

/** Creates the directory for all files, and marks it. Returns the function that removes the mark. */
async function prepareHome(home: string): Promise<() => void> {
  createPrivateDirectory(home)
  return markUnfinished(home)
}

/** @throws CommandError with exit code 2 if routers cannot use the address of the controller, or a setting is invalid */
async function assertRouterAddress(directory: string, settings: Overrides): Promise<void> {
  const { readConfig } = await import('../../src/settings/config.ts')
  const { getFirstControlAddress } = await import('../../src/settings/addresses.ts')
  const read = async () => readConfig(undefined, process.env, settings)
  const address = getFirstControlAddress(await read().catch(explainOpenError(directory)))
  assertAddress('advertise', address.replace(/^tls:/, ''))
}

/** The administrator of the flags, else of the prompts; without a terminal, with a random password. */
async function chooseCredentials(flags: {
  readonly 'admin-username'?: string | undefined
  readonly 'admin-password-file'?: string | undefined
}): Promise<AdminCredentials> {
  const { 'admin-username': flagUsername, 'admin-password-file': file } = flags
  if (file === undefined && !canPrompt()) {
    const credentials = { username: flagUsername ?? DEFAULT_USERNAME, password: randomBytes(18).toString('base64url') }
    assertCredentials(credentials)
    return { ...credentials, isGenerated: true }
  }
  const isAsked = flagUsername === undefined && file === undefined
  const username = isAsked ? await promptUsername('Username of the administrator') : (flagUsername ?? DEFAULT_USERNAME)
  const password = await promptNewPassword(file, async (text) => text, 'admin-password-file')
  assertCredentials({ username, password })
  return { username, password, isGenerated: false }
}

/** The files for the router and the device, beside the data. */
interface QuickstartFiles {
  readonly configuration: string
  readonly routerToken: string
  readonly deviceToken: string
}

/** Creates the records before the controller listens, and writes what the router and the device need. */
async function createNetwork(home: string, routerAddress: string | undefined): Promise<QuickstartFiles> {
  const transport = await openOffline(join(home, 'data'), getUserName(), {})
  const client = new Client(transport)
  const make = async (plural: string, body: object) =>
    ((await client.call('POST', `/${plural}`, body)).data as { id: string }).id
  const read = async (path: string) => (await client.call('GET', path)).data as Record<string, unknown>
  try {
    const all = { semantic: 'AnyOf', edgeRouterRoles: ['#public'] }
    const routerId = await make('edge-routers', { name: ROUTER, roleAttributes: ['public'], isTunnelerEnabled: true })
    await make('edge-router-policies', { name: 'all-identities', ...all, identityRoles: ['#all'] })
    await make('service-edge-router-policies', { name: 'all-services', ...all, serviceRoles: ['#all'] })
    const { enrollmentJwt } = await read(`/edge-routers/${routerId}`)
    const controllerAddress = readControllerAddress(String(enrollmentJwt))
    const host = splitAddress(controllerAddress.replace(/^tls:/, ''))
    const { data: configTypes } = await client.call(
      'GET',
      `/config-types?filter=${encodeURIComponent('name = "host.v1"')}`,
    )
    const [configType] = configTypes as { id: string }[]
    const configId = await make('configs', {
      name: `${SERVICE}-host`,
      configTypeId: configType?.id,
      data: { protocol: 'tcp', address: host.host, port: host.port },
    })
    const serviceId = await make('services', { name: SERVICE, configs: [configId], encryptionRequired: true })
    const deviceId = await make('identities', {
      name: DEVICE,
      type: 'Device',
      isAdmin: false,
      enrollment: { ott: true },
    })
    const policy = { semantic: 'AnyOf', serviceRoles: [`@${serviceId}`] }
    await make('service-policies', {
      name: `${SERVICE}-hosts`,
      type: 'Bind',
      ...policy,
      identityRoles: [`@${routerId}`],
    })
    await make('service-policies', {
      name: `${SERVICE}-users`,
      type: 'Dial',
      ...policy,
      identityRoles: [`@${deviceId}`],
    })
    const advertise = routerAddress ?? `${host.host}:${ROUTER_PORT}`
    const basePath = join(home, ROUTER)
    const { enrollment } = (await read(`/identities/${deviceId}`)) as { enrollment: { ott: { jwt: string } } }
    const files = {
      configuration: `${basePath}.yml`,
      routerToken: `${basePath}.jwt`,
      deviceToken: join(home, `${DEVICE}.jwt`),
    }
    writePrivateFile(files.routerToken, `${enrollmentJwt}\n`)
    writePrivateFile(files.deviceToken, `${enrollment.ott.jwt}\n`)
    const configuration = renderRouterConfiguration({
      name: ROUTER,
      basePath,
      controllerAddress,
      advertise,
      listen: toBindAddress(advertise),
      linkAdvertise: undefined,
      tunnel: 'host',
    })
    writePrivateFile(files.configuration, configuration)
    return files
  } finally {
    await client.close()
  }
}

function describeAdministrator({ username, password, isGenerated }: AdminCredentials): string[] {
  return [
    `Administrator  ${username}`,
    ...(isGenerated ? [`Password       ${password} (shown once; change it with: ${getProgram()} passwd)`] : []),
  ]
}

/** How the next commands start this program: `npm run quickstart` runs it in a clone, where it is not in PATH. */
const getProgram = () => (process.env.npm_lifecycle_event === 'quickstart' ? 'bin/controller' : 'controller')

/** The commands to the first bytes, in their order. */
function describeNextCommands(home: string, { configuration, routerToken, deviceToken }: QuickstartFiles): string[] {
  const toRelative = (path: string) => relative(process.cwd(), path) || '.'
  const toPath = (path: string) => quoteShellWord(toRelative(path))
  const device = toPath(deviceToken.replace(/\.jwt$/, '.json'))
  const root = toPath(join(home, 'data', 'pki', 'root.crt'))
  return [
    'Next, in other terminals (ziti is the program of OpenZiti, which contains the router):',
    ...listRouterCommands(toRelative(configuration), toRelative(routerToken)).map((command) => `  ${command}`),
    `  ${getProgram()} enroll ${toPath(deviceToken)}`,
    `Then ${DEVICE} reaches the service ${SERVICE} over the router:`,
    `  ziti tunnel proxy ${SERVICE}:${PROXY_PORT} -i ${device}`,
    `  curl --cacert ${root} https://127.0.0.1:${PROXY_PORT}/version`,
  ]
}
