// Reports jumps of the clock. They delete nothing, because sessions and audit records age by the monotonic clock.
import type { Kysely } from 'kysely'
import { type Instant, MAX_INSTANT, MIN_INSTANT, toIsoTime } from '../foundation/clock.ts'
import type { Log } from '../foundation/log.ts'
import type { WatchedClock } from '../foundation/watched-clock.ts'
import { CLOCK_JUMP } from './audit/audit.ts'
import type { Database } from './database.ts'
import type { Context } from './transactions/context.ts'

// Clocks that are synchronized over the network differ by seconds between two starts.
const START_TOLERANCE_MS = 60_000

/** Records a jump if the process started before the latest stored time. */
export async function reportStartInPast(db: Kysely<Database>, clock: WatchedClock): Promise<void> {
  const latest = await findLatestStoredTime(db)
  const now = clock.now()
  if (latest - now > START_TOLERANCE_MS) clock.noteJump({ from: latest, to: now })
}

async function findLatestStoredTime(db: Kysely<Database>): Promise<Instant> {
  const auditRecord = await db.selectFrom('audit_records').select('at').orderBy('n', 'desc').limit(1).executeTakeFirst()
  const session = await db
    .selectFrom('api_sessions')
    .select('lastActivityAt')
    .orderBy('lastActivityAt', 'desc')
    .limit(1)
    .executeTakeFirst()
  return Math.max(auditRecord?.at ?? 0, session?.lastActivityAt ?? 0)
}

/** Writes the jumps since the last call to the log and to the audit. */
export async function reportClockJumps(log: Log, context: Context, clock: WatchedClock): Promise<void> {
  for (const { from, to } of clock.takeJumps()) {
    const after = { from: toWritableTime(from), to: toWritableTime(to) }
    log.error(after, 'the system clock jumped: nothing expires because of it; check how it is set')
    await context.write(async ({ record }) => {
      record({ ...CLOCK_JUMP, audit: 'values', isAuditOnly: true, id: '', at: to, after })
    })
  }
}

function toWritableTime(instant: Instant): string {
  return toIsoTime(Math.min(Math.max(instant, MIN_INSTANT), MAX_INSTANT))
}
