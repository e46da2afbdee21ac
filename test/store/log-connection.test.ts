// Connections to the database of the log: encrypted, to a server that proves itself, and with a password from where none can read it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/settings/config.ts'
import { findLogPlace, type LogPlace } from '../../src/storage/cluster/log-place.ts'
import { LogConnection, type LogDatabase } from '../../src/storage/postgres/log-connection.ts'
import { issue, type TestCertificate } from '../world/authorities.ts'
import { findFreePort } from '../world/free-port.ts'
import { CLUSTER_KEY } from '../world/log-start.ts'
import { TestPostgres } from '../world/postgres.ts'

const PASSWORD = 'correct horse battery'

let folder: string
let authority: TestCertificate
let server: TestPostgres
/** A server whose certificate names another machine, and one without TLS. */
let misnamed: TestPostgres
let plain: TestPostgres

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'log-connection-'))
  authority = await issue('CN=databases', undefined, { isAuthority: true })
  const tls = await issue('CN=database', authority, { hosts: ['127.0.0.1'] })
  const ofOther = await issue('CN=database', authority, { hosts: ['db.example.com'] })
  server = await TestPostgres.start({ tls, password: PASSWORD })
  misnamed = await TestPostgres.start({ tls: ofOther })
  plain = await TestPostgres.start()
}, 120_000)
afterAll(async () => {
  for (const each of [server, misnamed, plain]) await each?.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Session {
  readonly ssl: boolean
}

async function connect(database: LogDatabase): Promise<Session | undefined> {
  const connection = new LogConnection(database)
  try {
    return await connection.run(async (client) => {
      const { rows } = await client.query<Session>('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
      return rows[0]
    })
  } finally {
    connection.end()
  }
}

describe('a connection to the database', () => {
  it('is encrypted, to a server whose certificate leads to the authority and names it', async () => {
    const url = await server.createDatabase()
    expect(await connect({ url, password: PASSWORD, ca: authority.pem })).toEqual({ ssl: true })
  })

  it('is refused to a server of another authority, and of none that the system knows', async () => {
    const url = await server.createDatabase()
    const other = await issue('CN=others', undefined, { isAuthority: true })
    for (const trusted of [{ ca: other.pem }, {}])
      await expect(connect({ url, password: PASSWORD, ...trusted })).rejects.toThrow(
        /^127\.0\.0\.1:\d+: (?:self-signed certificate in certificate chain|unable to verify the first certificate|unable to get local issuer certificate)/,
      )
  })

  it('is refused to a server whose certificate names another', async () => {
    const url = await misnamed.createDatabase()
    await expect(connect({ url, ca: authority.pem })).rejects.toThrow(/does not match certificate's altnames/)
  })

  it('is refused to a server without TLS, unless TLS is switched off', async () => {
    const url = await plain.createDatabase()
    await expect(connect({ url, ca: authority.pem })).rejects.toThrow('does not support SSL')
    expect(await connect({ url, isPlain: true })).toEqual({ ssl: false })
  })

  it('fails in plain words if nothing listens there, with what the system says as the cause', async () => {
    const failure = connect({ url: `postgres://test@127.0.0.1:${await findFreePort()}/network` })
    await expect(failure).rejects.toThrow(/^127\.0\.0\.1:\d+: connection refused$/)
    await expect(failure).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
  })

  it('is refused without the password, and with a wrong one', async () => {
    const url = await server.createDatabase()
    await expect(connect({ url, ca: authority.pem })).rejects.toThrow(/: it requires a password, and there is none$/)
    await expect(connect({ url, ca: authority.pem, password: 'wrong' })).rejects.toThrow(
      'password authentication failed for user "test"',
    )
  })
})

describe('the settings of a controller among several', () => {
  const write = (name: string, content: string | Buffer) => {
    const path = join(folder, name)
    writeFileSync(path, content)
    return path
  }

  function findPlace(url: string, others: Record<string, string> = {}): LogPlace | undefined {
    const settings = {
      'cluster.database': url,
      'cluster.name': 'one',
      'cluster.caFile': write('ca.pem', authority.pem),
      'cluster.keyFile': write('cluster.key', CLUSTER_KEY),
      advertise: ['one.example:1280'],
      ...others,
    }
    return findLogPlace(folder, readConfig(undefined, {}, settings))
  }

  it('name the file of the password, whose last line break does not count', async () => {
    const passwordFile = write('password', `${PASSWORD}\n`)
    const place = findPlace(await server.createDatabase(), { 'cluster.passwordFile': passwordFile }) as LogPlace
    expect(await connect(place.database)).toEqual({ ssl: true })
  })

  it('leave the password to the environment', async () => {
    const place = findPlace(await server.createDatabase()) as LogPlace
    process.env.PGPASSWORD = PASSWORD
    try {
      expect(await connect(place.database)).toEqual({ ssl: true })
    } finally {
      delete process.env.PGPASSWORD
    }
  })

  it('are refused with a password in the URL, which every account could read', () => {
    expect(() => findPlace(`postgres://test:${PASSWORD.replaceAll(' ', '-')}@127.0.0.1/network`)).toThrow(
      /cluster\.database .*password/,
    )
  })

  it('are refused if a file that they name cannot be read', () => {
    expect(() =>
      findPlace('postgres://test@127.0.0.1/network', { 'cluster.passwordFile': join(folder, 'none') }),
    ).toThrow(/cluster\.passwordFile .*names \S+none, which cannot be read: no such file or directory$/)
  })
})
