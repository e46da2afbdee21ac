// A projection that only passes on what commits change.
import type { Change } from '../../src/storage/changes.ts'
import type { Store } from '../../src/storage/store.ts'

/** Calls `apply` with the changes of each commit, after the projections that the store has already. */
export function followCommits(store: Store, apply: (changes: readonly Change[]) => void): Promise<void> {
  return store.projections.start({
    kind: 'side effect',
    name: 'test',
    restart: async () => {},
    apply: ({ changes }) => apply(changes),
  })
}
