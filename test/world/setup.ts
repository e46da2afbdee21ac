// Runs in every test file: after each test, no response may have contradicted the documents.
import { afterEach, expect } from 'vitest'
import { takeContradictions } from './described.ts'

afterEach(() => {
  expect(takeContradictions()).toEqual([])
})
