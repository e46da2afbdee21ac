// Every setting, defined once: default, explanation and parser. The commented file and the documents are generated from it.
import { isDeepStrictEqual } from 'node:util'
import { logLevels } from '../foundation/log.ts'
import { defaultApis, readListeners } from './listener-settings.ts'
import {
  bytesSetting,
  ConfigError,
  countSetting,
  durationSetting,
  readChoice,
  readDatabaseUrl,
  readDirectives,
  readDuration,
  readList,
  readNodeName,
  readOptionalPath,
  readOptionalTime,
  readOrigin,
  readReachableAddress,
  readSwitch,
  readWholeNumber,
} from './setting-types.ts'

export interface Setting<V> {
  readonly explain: string
  /** The default, as it is written in the file. */
  readonly default: unknown
  read(value: unknown, key: string): V
}

/** By their keys. */
export const settings = {
  listeners: {
    explain:
      'Where the controller listens, and which APIs it serves there: client, management, fabric, oidc (sign-in by OpenID Connect), control (routers), health and metrics, of which all but metrics are the default. The dialect is that of callers whose requests do not show it: native, as the documents spell a few words, or openziti, as its clients do. With tls: false, a listener on a loopback address serves health and metrics over plain HTTP, for requests whose Host is a loopback name or address, or one that is configured. With shared: true, one that serves control alone is the listener of control.shared.',
    default: [{ address: '127.0.0.1:1280', apis: defaultApis, dialect: 'native' }],
    read: readListeners,
  },
  advertise: {
    explain:
      'Names under which clients reach the controller, as host:port. The first one goes into enrollment tokens; all of them into the server certificate. Without any, the address of the first listener with TLS is used.',
    default: [],
    read: (value, key) => readList(value, key).map((entry) => readReachableAddress(entry, key)),
  },
  'control.advertise': {
    explain:
      'The name under which routers reach this controller, as host:port, if it is not the first one of advertise. Each of several controllers of one network has its own.',
    default: '',
    read: (value, key) => (value === '' ? undefined : readReachableAddress(value, key)),
  },
  'control.shared': {
    explain:
      'One name that leads to all controllers of a network, as host:port, for routers of releases before 2.0, which are connected to one controller at a time. Only that one listens there, by a listener with shared: true. Routers of later releases learn from it where each controller is. The same on all controllers.',
    default: '',
    read: (value, key) => (value === '' ? undefined : readReachableAddress(value, key)),
  },
  'session.timeout': durationSetting('30m', 'How long a sign-in stays alive without being used.', '1m'),
  'session.maxAge': {
    explain:
      'How long after its sign-in a session ends although it is used, if a person signed in by a password or a token: a duration of at least 1m such as 30d, or unlimited.',
    default: '30d',
    read: (value, key) => (value === 'unlimited' ? undefined : readDuration(value, key, '1m')),
  },
  'session.maxAgeOfDevices': {
    explain:
      'How long after its sign-in a session ends although it is used, if it began by a certificate: a duration of at least 1m, or unlimited.',
    default: 'unlimited',
    read: (value, key) => (value === 'unlimited' ? undefined : readDuration(value, key, '1m')),
  },
  'session.activityFlush': durationSetting(
    '90s',
    'How often the last use of sessions is written to the database.',
    '1s',
  ),
  'oidc.announce': {
    explain:
      'Whether clients are told that they can sign in by OpenID Connect: auto (as soon as no enrolled router is of a release before 2.0, because clients that sign in so cannot use older ones), always or never. Sign-in by OpenID Connect itself works in any case, on listeners that carry oidc.',
    default: 'auto',
    read: (value, key) => readChoice(['auto', 'always', 'never'] as const, value, key),
  },
  'oidc.announceCertificateRequests': {
    explain:
      'Whether clients are also told that a certificate can be requested during such a sign-in (OIDC_AUTH_WITH_CSR). Clients with the JVM SDK cannot connect then.',
    default: false,
    read: readSwitch,
  },
  'oidc.accessTokenLifetime': durationSetting(
    '30m',
    'How long an access token of OpenID Connect can be used; clients refresh it before.',
    '1m',
  ),
  'oidc.idTokenLifetime': durationSetting('30m', 'How long an ID token of OpenID Connect can be used.', '1m'),
  'oidc.refreshTokenLifetime': durationSetting(
    '24h',
    'How long a refresh token of OpenID Connect can be used; each use replaces it with a new one. It is valid for at least a minute longer than an access token, whatever is set.',
    '2m',
  ),
  'enrollment.identity': durationSetting('180m', 'How long the enrollment token of a new identity can be used.', '5m'),
  'enrollment.router': durationSetting('180m', 'How long the enrollment token of a new router can be used.', '5m'),
  'certificates.warnBefore': durationSetting(
    '30d',
    'How long before its end a certificate is reported in the log, once a day: those of the controller, of identities, routers, authorities and signers.',
    '1d',
  ),
  'adoption.trialEnds': {
    explain:
      "Until this time, as 2026-12-01T00:00:00Z, nothing is renewed that OpenZiti's controller, whose network was adopted, would not know: the intermediate, and the certificates of identities and routers, unless they end before. controller adopt --trial writes it.",
    default: '',
    read: readOptionalTime,
  },
  'totp.window': {
    explain:
      'How many steps of 30 seconds the clock of an authenticator app may be early or late: its codes are accepted that long before and after. At most 10.',
    default: 1,
    read: (value, key) => readWholeNumber(value, key, { min: 0, max: 10 }),
  },
  'totp.issuer': {
    explain:
      'What authenticator apps call this controller: up to 64 characters, without a colon. If it is empty, the host of the first advertised address.',
    default: '',
    read: (value, key) => readIssuer(value, key),
  },
  'audit.retention': {
    explain:
      'How long audit records are kept: a duration such as 365d, or forever. Older ones are cut off the old end, which is audited too.',
    default: 'forever',
    read: (value, key) => (value === 'forever' ? undefined : readDuration(value, key, '1d')),
  },
  'backup.every': {
    explain:
      'How often the controller makes a backup of its data directory: a duration of at least 1h such as 24h, or off. Each is verified after it was written; an error in the log names one that failed.',
    default: '24h',
    read: (value, key) => (value === 'off' ? undefined : readDuration(value, key, '1h')),
  },
  'backup.keep': countSetting(
    7,
    'How many backups are kept of each kind: scheduled, requested (snapshot), and made before a migration. The oldest are deleted.',
  ),
  'backup.directory': {
    explain:
      'Where backups are written: a directory that exists and belongs to the account of the controller, best on another disk. If it is empty, backups in the data directory.',
    default: '',
    read: readOptionalPath,
  },
  'backup.passphraseFile': {
    explain:
      'A file with the passphrase that encrypts these backups, which hold all keys of the network. Keep a copy of it elsewhere: without it they cannot be restored.',
    default: '',
    read: readOptionalPath,
  },
  'cluster.database': {
    explain:
      'The PostgreSQL database by which several controllers serve one network, as postgres://user@host/name; of several hosts with commas between them, the primary is used. controller cluster init and controller cluster join write it. If it is empty, this controller is alone.',
    default: '',
    read: readDatabaseUrl,
  },
  'cluster.name': {
    explain: 'What the other controllers call this one: a name that none of them has.',
    default: '',
    read: readNodeName,
  },
  'cluster.passwordFile': {
    explain: 'A file with the password for the database. If it is empty, the environment variable PGPASSWORD has it.',
    default: '',
    read: readOptionalPath,
  },
  'cluster.caFile': {
    explain:
      'A file with the certificates (PEM) of the authorities that the database has its certificate from, in place of the public ones.',
    default: '',
    read: readOptionalPath,
  },
  'cluster.tls': {
    explain: 'Whether connections to the database are encrypted. It can be false for a database on the same machine.',
    default: true,
    read: readSwitch,
  },
  'cluster.keyFile': {
    explain:
      'The file with the key under which controllers encrypt what they share. If it is empty, cluster.key in the data directory.',
    default: '',
    read: readOptionalPath,
  },
  'cluster.lease': durationSetting(
    '3s',
    'How long after its last contact with the database a controller grants rights: sign-ins, sessions, dials, lists of services. The same on all controllers.',
    '1s',
  ),
  'limits.bodyBeforeSession': bytesSetting('64KiB', 'The largest request body of a caller who is not signed in.'),
  'limits.body': bytesSetting('1MiB', 'The largest request body of a caller who is signed in.'),
  'limits.ownBody': bytesSetting(
    '8KiB',
    'The largest request body where identities that do not administer may write: their own authenticators and sessions.',
  ),
  'limits.postureBody': bytesSetting('64KiB', 'The largest posture response of a client.'),
  'limits.networkFile': bytesSetting('32MiB', 'The largest network that an administrator can plan or apply as a file.'),
  'limits.header': bytesSetting('16KiB', 'The largest set of request headers.'),
  'limits.headerTime': durationSetting('10s', 'How long the headers of a request may take to arrive.'),
  'limits.requestTime': durationSetting(
    '30s',
    'How long a whole request may take to arrive, from its first byte to its last.',
  ),
  'limits.answerTime': durationSetting('10s', 'How long an operation may take; then the response is 503.'),
  'limits.writeTime': durationSetting(
    '30s',
    'How long a client may read nothing of a response that waits for it; then its connection is closed.',
    '1s',
  ),
  'limits.unsentPerConnection': bytesSetting(
    '8MiB',
    'How much of large responses may wait for one client that does not read; if it asks for another one beyond that, its connection is cut.',
  ),
  'limits.unsent': bytesSetting(
    '256MiB',
    'How much of all responses may wait for clients that do not read; beyond that the connections are cut that have taken nothing for the longest time.',
  ),
  'limits.idleTime': durationSetting('60s', 'How long a connection is kept open between requests.'),
  'limits.connections': countSetting(
    10_000,
    'How many connections may be open in all; more are cut before their handshake.',
  ),
  'limits.connectionsPerAddress': countSetting(
    4_000,
    'How many connections may be open from one address, or from one /64 of IPv6. Everyone behind one router, or behind a proxy, has one address.',
  ),
  'limits.delay': durationSetting(
    '500ms',
    'How long requests may have to wait for their turn. Beyond that, anonymous requests are refused with 429; at twice as much, all requests except those of administrators are.',
  ),
  'limits.writeQueue': countSetting(
    1_000,
    "How many changes may wait for the disk; more are refused with 429, and so are changes that would wait for longer than half of `limits.answerTime`. Administrators' may be twice as many, and wait for twice as long.",
  ),
  'limits.sessionsPerIdentity': countSetting(
    500,
    'How many API sessions one identity may have; a further sign-in ends one that owes a second factor, else the one that was not used for the longest time.',
  ),
  'limits.signInsPerIdentity': countSetting(
    10,
    'How many times a second one identity may sign in from one source, on average; a burst may be ten times as many. More are refused with 429.',
  ),
  'limits.writesPerIdentity': countSetting(
    50,
    'How many writing requests a second one identity may send that does not administer, on average; a burst may be ten times as many. More are refused with 429.',
  ),
  'limits.ownChangesPerIdentity': countSetting(
    10,
    'How many times a minute one identity that does not administer may change its own authenticators, each of which is an audit record. More are refused with 429.',
  ),
  'limits.passwordQueue': countSetting(
    100,
    'How many password sign-ins may wait for their turn; more are refused with 429. Sources (an address, or a /64 of IPv6) take turns, and one that has many waiting gives up places to others. Everyone behind one proxy is one source.',
  ),
  'signers.allowHttp': {
    explain:
      'Whether the key sets of external JWT signers may be fetched over http. An attacker in the network between can then sign in as any identity.',
    default: false,
    read: readSwitch,
  },
  'signers.caFile': {
    explain:
      'A file with the certificates (PEM) of private authorities that the endpoints of external JWT signers have their certificates from; trusted besides the public ones.',
    default: '',
    read: readOptionalPath,
  },
  'signers.timeout': durationSetting(
    '5s',
    'How long the endpoint of an external JWT signer may take to respond.',
    '10ms',
  ),
  'webhooks.allowHttp': {
    explain:
      'Whether webhooks may be sent over http. Everyone in the network between can then read the events; their signatures still show a change.',
    default: false,
    read: readSwitch,
  },
  'webhooks.allowPrivate': {
    explain:
      'Whether webhooks may be sent to addresses that are not public: of this machine, and of private networks. The right to make a webhook is then one to send requests to what only this machine can reach.',
    default: false,
    read: readSwitch,
  },
  'webhooks.caFile': {
    explain:
      'A file with the certificates (PEM) of private authorities that the receivers of webhooks have their certificates from; trusted besides the public ones.',
    default: '',
    read: readOptionalPath,
  },
  'webhooks.timeout': durationSetting('10s', 'How long the receiver of a webhook may take to respond.', '10ms'),
  'cors.origins': {
    explain:
      'The origins, as https://console.example.com, whose scripts may call the APIs from a browser (CORS). They can do whatever the person at the browser can do.',
    default: [],
    read: (value, key) => readList(value, key).map((entry) => readOrigin(entry, key)),
  },
  'console.directory': {
    explain:
      'A directory with the files of a web console, such as a built copy of the OpenZiti console. They are served at /zac/, on the listeners with the management API.',
    default: '',
    read: readOptionalPath,
  },
  'console.contentSecurityPolicy': {
    explain:
      "Directives in place of those of the default content security policy of the console, which allows its own files and this controller. A console that signs in with another provider needs connect-src 'self' https://login.example.com.",
    default: '',
    read: readDirectives,
  },
  'health.minFreeDisk': bytesSetting(
    '64MiB',
    'How much room the disk of the data directory must have; with less, the controller reports that it is not ready.',
  ),
  'log.level': {
    explain: `How much is logged: ${logLevels.join(', ')}. controller log level changes it until the next start.`,
    default: 'info',
    read: (value, key) => readChoice(logLevels, value, key),
  },
  'log.format': {
    explain:
      'How log lines are written: json, text (for people), or auto, which is text if standard error is a terminal and json otherwise.',
    default: 'auto',
    read: (value, key) => readChoice(['auto', 'json', 'text'] as const, value, key),
  },
  'log.requests': {
    explain:
      'Whether each request becomes a log line, at the level info, with its operation, status, duration, address and identity.',
    default: false,
    read: readSwitch,
  },
} as const satisfies Record<string, Setting<unknown>>

export type SettingKey = keyof typeof settings
export type Config = { readonly [K in SettingKey]: ReturnType<(typeof settings)[K]['read']> }

export const settingKeys = Object.keys(settings) as SettingKey[]
export const settingGroups: ReadonlySet<string> = new Set(settingKeys.flatMap((key) => key.split('.').slice(0, -1)))

/** For each setting: its key, its default as it is written in the file, and its explanation. */
export const settingDocs: readonly { key: string; default: unknown; explain: string }[] = settingKeys.map((key) => ({
  key,
  default: settings[key].default,
  explain: settings[key].explain,
}))

/** Settings from the command line or another caller, by key; they win over everything. */
export type Overrides = Partial<Record<SettingKey, unknown>>

export function getDefault(key: SettingKey): unknown {
  return settings[key].default
}

/** Whether two written values mean the same. */
export function isSameSetting(key: SettingKey, one: unknown, other: unknown): boolean {
  const setting: Setting<unknown> = settings[key]
  return isDeepStrictEqual(setting.read(one, key), setting.read(other, key))
}

/** The environment variable that gives a setting: `session.timeout` is `CONTROLLER_SESSION_TIMEOUT`. */
export function toVariableName(key: string): string {
  const words = key.replace(/[A-Z]/g, (letter) => `_${letter}`).replaceAll('.', '_')
  return `CONTROLLER_${words.toUpperCase()}`
}

/** The names of the environment variables of all settings. */
export const settingVariables: readonly string[] = settingKeys.map(toVariableName)

function readIssuer(value: unknown, key: string): string {
  const issuer = typeof value === 'string' ? value.trim() : undefined
  if (issuer === undefined || issuer.length > 64 || /[:\p{Control}]/u.test(issuer)) {
    throw new ConfigError(key, 'must be text of at most 64 characters, without a colon')
  }
  return issuer
}
