// Runs in every test file: after each test, no response may have contradicted the documents, and no server fault may be
// one that the test did not state.
import { afterAll, afterEach, expect } from 'vitest'
import type { Commit } from '../../src/storage/changes.ts'
import { Projections } from '../../src/storage/projection.ts'
import { takeContradictions } from './described.ts'
import { takeUnexpectedFaults } from './faults.ts'

// Projections receive each commit as a process would that did not make it.
const { apply } = Projections.prototype
Projections.prototype.apply = function (commit) {
  return apply.call(this, JSON.parse(JSON.stringify(commit)) as Commit)
}

afterEach(() => {
  expect(takeContradictions()).toEqual([])
  expect(takeUnexpectedFaults()).toEqual({ unexpected: [], missing: [] })
})

// What the hooks of a file did after its last test.
afterAll(() => {
  expect(takeUnexpectedFaults().unexpected).toEqual([])
})
