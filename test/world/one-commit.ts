// Transactions that commit together for certain: a group ends by time as well, and time stands still for it.
import { expect, vi } from 'vitest'
import type { TestController } from './controller.ts'

/** Settles what `begin` starts in one turn of the loop, and expects that one commit held all of it. */
export async function settleInOneCommit(
  { controller }: TestController,
  begin: () => readonly Promise<unknown>[],
): Promise<PromiseSettledResult<unknown>[]> {
  const { commits } = controller.store.stats()
  const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  try {
    const settled = await Promise.allSettled(begin())
    expect(controller.store.stats().commits - commits).toBe(1)
    return settled
  } finally {
    now.mockRestore()
  }
}
