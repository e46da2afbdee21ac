// Exports and plans of a network over the API.
import { expect } from 'vitest'
import type { People } from './people.ts'

export interface FileSection {
  readonly resource: string
  readonly records: readonly Readonly<Record<string, unknown>>[]
}

// biome-ignore lint/suspicious/noExplicitAny: tests read any member of a response
type Item = Readonly<Record<string, any>>

export async function readExport(people: People): Promise<FileSection[]> {
  return people.manage('GET', '/controller/network')
}

/** The items of a plan, and its summary apart. */
export async function requestPlan(
  people: People,
  sections: readonly FileSection[],
  isPruning = false,
): Promise<{ items: Item[]; summary: Item }> {
  const path = `/controller/network/plan?prune=${isPruning}`
  const response = await people.ask('POST', path, sections)
  expect(response.body.error).toBeUndefined()
  const items = response.body.data as Item[]
  return { items: items.slice(0, -1), summary: items.at(-1) as Item }
}
