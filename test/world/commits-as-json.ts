// Projections receive each commit as a process would that did not make it.
import type { Commit } from '../../src/storage/transactions/changes.ts'
import { Projections } from '../../src/storage/transactions/projection.ts'

const { apply } = Projections.prototype
Projections.prototype.apply = function (commit) {
  return apply.call(this, JSON.parse(JSON.stringify(commit)) as Commit)
}
