// The networks of OpenZiti's controller that tests adopt: each is unpacked into a folder of its own.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { AdoptionReport } from '../../src/adopt/adoption-report.ts'
import { adoptNetwork } from '../../src/adopt.ts'
import { TestClock } from '../world/controller.ts'

export type NetworkName = '1.6.5' | '1.6.5-three-roots' | '2.0.3'

/** While the certificates of the networks are valid. */
export const NETWORK_TIME = Date.UTC(2026, 10, 23, 3)

const FIXTURES = join(import.meta.dirname, '../fixtures/openziti')
const DATABASES = { '1.6.5': 'db/ctrl.db', '1.6.5-three-roots': 'db/ctrl.db', '2.0.3': 'instance-1/raft/ctrl-ha.db' }

export interface UnpackedNetwork {
  readonly home: string
  readonly config: string
  readonly database: string
}

/** The networks as their files are at an operator's: certificates, configuration and database. */
export function unpackNetwork(name: NetworkName, home: string): UnpackedNetwork {
  const source = join(FIXTURES, name)
  mkdirSync(home, { recursive: true })
  for (const folder of ['pki', 'config', 'clients'])
    cpSync(join(source, folder), join(home, folder), { recursive: true })
  const config = join(home, 'config/ctrl.yaml')
  writeFileSync(config, readFileSync(config, 'utf8').replaceAll('@HOME@', home))
  const database = join(home, DATABASES[name])
  mkdirSync(dirname(database), { recursive: true })
  writeFileSync(database, readDatabase(name))
  return { home, config, database }
}

export function readDatabase(name: NetworkName): Buffer {
  const folder = join(FIXTURES, name)
  const file = readdirSync(folder).find((each) => each.startsWith('ctrl'))
  return gunzipSync(readFileSync(join(folder, file as string)))
}

/** A JSON file of a network: the decoded database, or the responses of the former controller. */
export function readNetworkJson<T>(name: NetworkName, file: 'dump' | 'rest'): T {
  return JSON.parse(gunzipSync(readFileSync(join(FIXTURES, name, `${file}.json.gz`))).toString()) as T
}

/** The snapshot of the running controller of release 2.0.3, compressed. */
export const SNAPSHOT = join(FIXTURES, '2.0.3/snapshot.db.gz')

export function readClientFile(name: NetworkName, file: string): string {
  const path = join(FIXTURES, name, 'clients', file)
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/** Adopts a network into a data directory below a folder. */
export async function adoptFixture(
  name: NetworkName,
  folder: string,
): Promise<{ readonly directory: string; readonly report: AdoptionReport; readonly network: UnpackedNetwork }> {
  const network = unpackNetwork(name, join(folder, name))
  const directory = join(folder, `data-${name}`)
  const clock = new TestClock(NETWORK_TIME)
  const adoption = await adoptNetwork({ directory, configuration: network.config, env: {}, clock, osUser: 'operator' })
  adoption.complete()
  return { directory, report: adoption.report, network }
}

/** The id of a record in the former database, by its name. */
export function findRecordId(network: NetworkName, kind: string, name: string): string {
  const { ziti } = readNetworkJson<{ ziti: Record<string, Record<string, { name: string }>> }>(network, 'dump')
  const [id = ''] = Object.entries(ziti[kind] ?? {}).find(([, record]) => record.name === name) ?? []
  return id
}
