// Reports who has not received the new root while it replaces another one.
import type { Log } from '../../foundation/log.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { RootReceipts } from './root-receipts.ts'

// Routers are few; a larger network must not fill the log.
const MAX_NAMED_ROUTERS = 100

/** Reports each router that has not fetched the new root, with the command that helps, and how many have not in all; or that all have. */
export async function reportMissingRoot(log: Log, { db }: Context, receipts: RootReceipts): Promise<void> {
  const totalMissing = await receipts.countMissing(db)
  if (totalMissing === 0) {
    if (receipts.isReplacing) log.info({}, 'all have received the new root: controller pki rotate root --finish')
    return
  }
  for (const { kind, name, remedy } of await receipts.listMissing(db, MAX_NAMED_ROUTERS)) {
    if (kind === 'router') log.warn({ router: name, remedy }, 'a router has not fetched the new root')
  }
  log.warn({ totalMissing }, 'some have not fetched the new root: controller pki missing-root')
}
