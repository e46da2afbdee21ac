// The other controllers of a former cluster, of which one is adopted: clients that enrolled with another one know only its addresses.
import type { AdoptionNotes } from './adoption-notes.ts'
import type { SourceDatabase, SourceRecord } from './source-records.ts'

/** Notes each controller of the database that is not the adopted one, with the addresses at which clients know it. */
export function noteOtherControllers(
  database: SourceDatabase,
  { controllerId, advertise }: { readonly controllerId: string; readonly advertise: readonly string[] },
  notes: AdoptionNotes,
): void {
  for (const [id, record] of database.records('controllers')) {
    if (id === controllerId) continue
    const formerAddresses = listClientAddresses(record).filter((address) => !advertise.includes(address))
    const consequence =
      formerAddresses.length === 0
        ? ''
        : `; clients that enrolled with it know only ${formerAddresses.join(', ')}, which must lead to this controller and be added to advertise, and its unused enrollment tokens have to be issued again`
    notes.add('controllers', id, record.text('name') ?? '', `has to be switched off${consequence}`)
  }
}

function listClientAddresses(record: SourceRecord): string[] {
  const urls = record.part('apiAddresses')?.parts('edge-client') ?? []
  return urls.flatMap(([, part]) => {
    const text = part.text('apiAddresses.url') ?? ''
    if (!URL.canParse(text)) return []
    const { hostname, port } = new URL(text)
    return [`${hostname}:${port || '443'}`]
  })
}
