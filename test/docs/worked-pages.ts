// The pages whose commands are run, and what a test has in place of a reader: files, what is typed, and what it cannot run.
import { join } from 'node:path'
import type { Overrides } from '../../src/settings/settings.ts'
import { unpackNetwork } from '../adopt/networks.ts'
import { makeAuthority } from '../world/authorities.ts'
import { ADMIN } from '../world/controller.ts'
import { authorityFile, json, openEndpoint } from '../world/endpoints.ts'
import { findFreePort } from '../world/free-port.ts'
import { createIssuerKey, signToken, toJwk } from '../world/issuers.ts'
import { TestPostgres } from '../world/postgres.ts'
import { openReceiver } from '../world/webhook-receiver.ts'
import { listYamlBlocks } from './document-commands.ts'
import type { PageRun } from './page-run.ts'

/** The keys of its tables are commands of the page, as `DocumentCommand.text` has them. */
export interface WorkedPage {
  readonly page: string
  /** False if the commands of the page make the controller. */
  readonly hasController?: false
  readonly settings?: Overrides
  /** Makes what the page presumes. */
  prepare?(run: PageRun): Promise<void>
  /** Commands of the controller that a reader has run in between. */
  readonly before?: Readonly<Record<string, readonly string[]>>
  /** Flags in place of prompts. */
  readonly typed?: Readonly<Record<string, string>>
  /** The exit codes that the page leads to, besides 0. */
  readonly exits?: Readonly<Record<string, number>>
  /** Commands of the controller that a test does not run, with the reason. */
  readonly notRun?: Readonly<Record<string, string>>
}

/** Programs of blocks that a test does not run, with the reason. */
export const PROGRAMS_NOT_RUN: Readonly<Record<string, string>> = {
  alias: 'it is for a shell; the tests name the program by its path',
  chown: 'it needs the account of the service',
  curl: 'it asks a router, which the repository does not have',
  docker: 'there is no container engine on every machine',
  jq: 'it is not on every machine',
  node: 'it builds the console, which is not part of the repository',
  npm: 'it installs, or does what test/cli/package.test.ts and test/cli/quickstart.test.ts run',
  npx: 'it builds the console, which is not part of the repository',
  openssl: 'test/cli/enroll-by-authority.test.ts converts bundles by it',
  pip: 'it installs the C SDK: test/clients/',
  python: 'it runs the C SDK: test/clients/',
  systemctl: 'it changes the services of the machine',
  useradd: 'it changes the accounts of the machine',
  ziti: "it is OpenZiti's, which is not part of the repository",
}

const CREDENTIALS = `--username ${ADMIN.username} --password-file password.txt`
const HOST = '{"protocol":"tcp","address":"127.0.0.1","port":8000}'
const ENDLESS = 'it runs until Ctrl-C: test/cli/events-watch.test.ts'
const IN_BROWSER = 'it waits for a browser: test/cli/login-browser.test.ts and test/cli/login-signer.test.ts'
const WITH_APP = 'it asks for a code of an authenticator app: test/cli/mfa.test.ts'

const ADOPT_BY_PARTS =
  'controller adopt --data-dir /var/lib/edge-controller --database ctrl.db --signing-cert signer.pem --signing-key signer.key --ca cas.pem --server-cert server.chain.pem --server-key server.key --control-cert client.chain.pem --address ctrl.example.com:1280 --control-address ctrl.example.com:6262'

/** The id of a record. */
async function findId(run: PageRun, noun: string, name: string): Promise<string> {
  return JSON.parse(await run.run(noun, 'get', name, '-o', 'json')).id
}

export const WORKED_PAGES: readonly WorkedPage[] = [
  {
    page: 'README.md',
    hasController: false,
    async prepare(run) {
      // In place of `npm start`.
      const { stdout } = await run.serve('--data-dir', 'data', '--listen', `127.0.0.1:${await findFreePort()}`)
      run.write('bootstrap-token', /^ {2}([\w-]{100,})$/m.exec(stdout)?.[1] ?? '')
    },
    typed: { 'controller login --bootstrap': `--bootstrap-file bootstrap-token ${CREDENTIALS}` },
    exits: { 'controller policy advise laptop web': 3 },
  },
  {
    page: 'docs/routers.md',
    async prepare(run) {
      await run.makeNetworkOfQuickStart()
      // In place of `npm run quickstart`.
      run.write('quickstart/laptop.jwt', await run.run('identity', 'create', 'of-the-quickstart', '-o', 'jwt'))
    },
  },
  {
    page: 'docs/end-users.md',
    async prepare(run) {
      await run.run('service', 'create', 'web', '--role', 'web')
      const roles = ['--identity-roles', '#all', '--service-roles', '#web']
      await run.run('service-policy', 'create', 'web-users', '--type', 'Dial', ...roles)
      run.write('ci.jwt', await run.run('identity', 'create', 'ci', '-o', 'jwt'))
      await run.run('enroll', 'ci.jwt')
      run.write('new-password.txt', 'another horse battery\n')
    },
    before: {
      'controller login https://controller.example.com:1280 --username anna': [
        'enroll anna.jwt --password-file password.txt',
      ],
      'controller access': ['login --identity laptop.json'],
      'controller passwd': [`login https://controller.example.com:1280 ${CREDENTIALS}`],
    },
    typed: {
      'controller login https://controller.example.com:1280 --username anna': '--password-file password.txt --yes',
      'controller passwd': '--current-password-file password.txt --password-file new-password.txt',
    },
    exits: { 'controller access web': 3 },
    notRun: {
      'controller enroll laptop.jwt --cert laptop.pem --key laptop.pem':
        'it is for a token of another method: test/cli/enroll-by-authority.test.ts',
      'controller login https://controller.example.com:1280 --ext-jwt-file token.jwt':
        'it needs an issuer: test/cli/login-factors.test.ts',
      'controller login https://controller.example.com:1280 --browser': IN_BROWSER,
      'controller login https://controller.example.com:1280 --signer keycloak': IN_BROWSER,
      'controller mfa enroll': WITH_APP,
      'controller mfa recovery-codes': WITH_APP,
      'controller mfa remove': WITH_APP,
    },
  },
  {
    page: 'docs/permissions.md',
    prepare: (run) => run.makeNetworkOfQuickStart(),
    typed: { 'controller token delete nightly': '--yes' },
  },
  {
    page: 'docs/webhooks.md',
    settings: { 'webhooks.allowPrivate': true, 'webhooks.caFile': authorityFile().path },
    async prepare(run) {
      const receiver = await openReceiver()
      run.closeLater(receiver)
      run.replace('https://alerts.example/events', receiver.url)
      run.write('secret.txt', 'a secret of some length\n')
    },
  },
  {
    page: 'docs/network-file.md',
    async prepare(run) {
      await run.makeNetworkOfQuickStart()
      await run.run('config', 'create', 'web-host', '--config-type', 'host.v1', '--data', HOST)
      const [example = ''] = listYamlBlocks('docs/network-file.md')
      run.write('base.yaml', example)
      run.write('sites/north.yaml', 'version: 1\nservices:\n  - { name: north, roleAttributes: [web] }\n')
      const login = `login https://controller.example.com:1280 ${CREDENTIALS} --yes --profile`
      for (const profile of ['old', 'new']) await run.run(...login.split(' '), profile)
    },
    typed: { 'controller apply --plan network.plan': '--yes', 'controller apply -f network.yaml': '--yes' },
    exits: { 'controller plan -f base.yaml -f sites/ --out network.plan': 3 },
  },
  {
    page: 'docs/backups.md',
    prepare: async (run) => run.write('passphrase.txt', 'a passphrase of some length\n'),
  },
  {
    page: 'docs/posture.md',
    prepare: (run) => run.makeNetworkOfQuickStart(),
    typed: { "controller service-policy update web-users --posture-check-roles '@mfa-daily'": '--yes' },
    exits: { 'controller posture-check test mfa-daily laptop': 3, 'controller policy advise laptop web': 3 },
  },
  {
    page: 'docs/certificate-authorities.md',
    async prepare(run) {
      const { pem, keyPem } = await makeAuthority()
      run.write('ca.pem', pem)
      run.write('ca.key', keyPem)
    },
  },
  {
    page: 'docs/external-jwt-signers.md',
    settings: { 'signers.caFile': authorityFile().path },
    async prepare(run) {
      await run.makeNetworkOfQuickStart()
      const key = createIssuerKey()
      const keySet = await openEndpoint(json({ keys: [toJwk(key)] }))
      run.closeLater(keySet)
      const issuer = 'https://keycloak.example/realms/staff'
      run.replace(`${issuer}/protocol/openid-connect/certs`, `${keySet.url}/certs`)
      const now = Math.floor(run.world.clock.now() / 1000)
      const subject = '5b0c8a0e-6c39-4f7e-9a55-1c3d3c4c0d21'
      const claims = { iss: issuer, aud: 'controller', sub: subject, iat: now, exp: now + 300 }
      run.write('token.jwt', signToken({ alg: key.algorithm, kid: key.kid }, claims, key))
    },
  },
  {
    page: 'docs/openid-connect.md',
    async prepare(run) {
      await run.makeNetworkOfQuickStart()
      run.replace('IDENTITY_ID', await findId(run, 'identity', 'laptop'))
    },
    notRun: { 'controller login https://controller.example.com:1280 --browser': IN_BROWSER },
  },
  {
    page: 'docs/certificates.md',
    async prepare(run) {
      await run.makeNetworkOfQuickStart()
      await run.run('enroll', 'laptop.jwt')
      const { items } = JSON.parse(await run.run('authenticator', 'list', '-o', 'json', '--filter', 'method = "cert"'))
      run.replace('ID', items[0].id)
    },
  },
  {
    page: 'docs/events.md',
    notRun: {
      'controller events watch': ENDLESS,
      'controller events watch --type sign-in-refused --type record-deleted': ENDLESS,
      'controller events watch --subject services': ENDLESS,
      'controller events watch -o jsonl | jq -r \'select(.type == "router-offline") | .id\'': ENDLESS,
      'controller events watch -o jsonl --since 812-5d0f3e6a91c2-7Q4ZK2MB-41': ENDLESS,
    },
  },
  {
    page: 'docs/several-controllers.md',
    hasController: false,
    async prepare(run) {
      const server = await TestPostgres.start()
      run.closeLater({ close: () => server.stop() })
      run.replace('postgres://controller@127.0.0.1/controller', await server.createDatabase())
      for (const port of ['1281', '1282', '1283']) run.replace(`:${port}`, `:${await findFreePort()}`)
      run.write('pw', `${ADMIN.password}\n`)
    },
    exits: { 'controller doctor': 3 },
    notRun: {
      'controller cluster rekey --data-dir a --complete':
        'its controller runs until the end of the page: test/cluster/rekey.test.ts',
      'controller db restore controller.tar.gz --data-dir a':
        'its controller runs until the end of the page: test/cluster/restore.test.ts',
    },
  },
  {
    page: 'docs/adopt.md',
    hasController: false,
    async prepare(run) {
      const { config, database } = unpackNetwork('1.6.5', join(run.folder, 'ziti'))
      run.replace('/etc/ziti/controller.yaml', config)
      run.replace('/var/lib/ziti/ctrl.db-20261124-005703', database)
    },
    typed: {
      'controller adopt --from /etc/ziti/controller.yaml --data-dir /var/lib/edge-controller': '--yes',
    },
    notRun: {
      'controller serve --data-dir /var/lib/edge-controller':
        'it listens at the ports of the former controller: test/adopt/adoption.test.ts opens it',
      [ADOPT_BY_PARTS]: 'test/adopt/parts.test.ts adopts by parts',
    },
  },
  { page: 'docs/operations.md', hasController: false },
  { page: 'docs/console.md', hasController: false },
]
