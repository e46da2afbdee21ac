// Runs in every test file: after each test, no response may have contradicted the documents, and no server fault may be
// one that the test did not state.
import { afterAll, afterEach, expect } from 'vitest'
import './built-threads.ts'
import './commits-as-json.ts'
import { dropStatements, takeContradictions, takeUnexpectedFaults } from './faults.ts'

afterEach(() => {
  expect(takeContradictions()).toEqual([])
  expect(takeUnexpectedFaults()).toEqual({ unexpected: [], missing: [] })
})

// Checks the log for the hooks that ran after the last test of a file.
afterAll(() => {
  const { unexpected } = takeUnexpectedFaults()
  dropStatements()
  expect(unexpected).toEqual([])
})
