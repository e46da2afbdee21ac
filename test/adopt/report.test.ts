// The report of an adoption: records and settings that cannot be adopted as they are, and what becomes of them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { type Adoption, adoptNetwork } from '../../src/adopt.ts'
import { TestClock } from '../world/controller.ts'
import { type EditableBucket, editDatabase } from './edited-database.ts'
import { findRecordId, NETWORK_TIME, type NetworkName, unpackNetwork } from './networks.ts'

const folder = mkdtempSync(join(tmpdir(), 'report-'))
afterAll(() => rmSync(folder, { recursive: true }))
let adoptions = 0

interface Changes {
  readonly network?: NetworkName
  readonly records?: (records: EditableBucket) => void
  readonly configuration?: (text: string) => string
  readonly now?: number
}

/** Adopts a network after these changes. */
function adoptChanged({ network = '1.6.5', records, configuration, now = NETWORK_TIME }: Changes): Promise<Adoption> {
  adoptions += 1
  const home = join(folder, String(adoptions))
  const { config, database } = unpackNetwork(network, home)
  if (records) editDatabase(database, records)
  if (configuration) writeFileSync(config, configuration(readFileSync(config, 'utf8')))
  const clock = new TestClock(now)
  return adoptNetwork({ directory: join(home, 'data'), configuration: config, env: {}, clock, osUser: 'operator' })
}

const describeNotes = ({ report }: Adoption) =>
  report.notes.map(({ kind, name, id, problem }) => `${kind} ${name || id}: ${problem}`)

it('names a permission that does not exist here, and adopts the identity with its others', async () => {
  const id = findRecordId('2.0.3', 'identities', 'reader')
  const adoption = await adoptChanged({
    network: '2.0.3',
    records: (records) => records.at('identities', id, 'permissions').add('moon.read'),
  })
  expect(describeNotes(adoption)).toContainEqual(
    'identities reader: its permission moon.read does not exist here: it is left out',
  )
  expect(adoption.report.counts.identities).toEqual({ found: 15, adopted: 15 })
})
