// Deletes from the log what no controller needs any more: it can begin with one of the two newest snapshots.
import type { Client } from 'pg'

// A transaction of the size of many groups of commits, so that the database serves others meanwhile.
const MAX_DELETED = 5_000

/** The position of the second newest snapshot; null if there are fewer than two. */
const SECOND = `
  select position from controller.snapshots where manifest is not null order by position desc offset 1 limit 1`

// A controller that has been silent for longer begins with a snapshot again, like one that is new.
const BOUNDARY = `
  select least((${SECOND}), (
    select min(position) from controller.nodes where seen_at > clock_timestamp() - interval '1 day'
  )) as boundary where exists (${SECOND})`

const DELETE_COMMITS = `
  delete from controller.commits where position in (
    select position from controller.commits where position <= $1 order by position limit ${MAX_DELETED}
  )`

/** Snapshots that were left unfinished, and those before the two newest. */
const DELETE_SNAPSHOTS = `
  delete from controller.snapshots where
    (manifest is null and touched_at < clock_timestamp() - interval '1 hour')
    or (manifest is not null and position < (${SECOND}))`

const DELETE_DIGESTS = `delete from controller.digests where position < (${SECOND})`

/** Returns how many commits were deleted. */
export async function compactLog(client: Client): Promise<number> {
  await client.query(DELETE_SNAPSHOTS)
  await client.query(DELETE_DIGESTS)
  const { rows } = await client.query<{ boundary: number | null }>(BOUNDARY)
  const boundary = rows[0]?.boundary
  if (boundary === undefined || boundary === null) return 0
  let deleted = 0
  for (;;) {
    const { rowCount } = await client.query(DELETE_COMMITS, [boundary])
    deleted += rowCount ?? 0
    if ((rowCount ?? 0) < MAX_DELETED) return deleted
  }
}
