// Runs in every test file: after each test, no response may have contradicted the documents, and no server fault may be
// one that the test did not state.
import { afterAll, afterEach, expect } from 'vitest'
import './built-threads.ts'
import './commits-as-json.ts'
import { dropStatements, takeContradictions, takeUnexpectedFaults } from './faults.ts'

// A controller that starts in this process closes its files to others, and further files of tests run in it.
const umask = process.umask()
afterEach(() => {
  process.umask(umask)
  expect(takeContradictions()).toEqual([])
  expect(takeUnexpectedFaults()).toEqual({ unexpected: [], missing: [] })
})

// Checks the log for the hooks that ran after the last test of a file.
afterAll(() => {
  const { unexpected } = takeUnexpectedFaults()
  dropStatements()
  expect(unexpected).toEqual([])
})
