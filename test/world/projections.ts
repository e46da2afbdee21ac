// A projection that only passes on what commits change.

import type { Store } from '../../src/storage/store.ts'
import type { Change, Commit } from '../../src/storage/transactions/changes.ts'

/** Calls `apply` with each commit and its changes, after the projections that the store has already. */
export function followCommits(
  store: Store,
  apply: (changes: readonly Change[], commit: Commit) => void,
): Promise<void> {
  return store.projections.start({
    kind: 'side effect',
    name: 'test',
    restart: async () => {},
    apply: (commit) => apply(commit.changes, commit),
  })
}
