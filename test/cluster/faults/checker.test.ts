// The judge of runs with faults finds each kind of broken promise, and none in a history that keeps them.
import { describe, expect, it } from 'vitest'
import type { LoggedCommit } from '../../../src/storage/commit-log.ts'
import { findViolations } from './checker.ts'
import { type Grant, History, type Write } from './history.ts'

const LEASE_MS = 3_000

function commit(position: number, changes: readonly object[]): LoggedCommit {
  return { position, id: `c${position}`, changes, chain: '', node: 'n', at: 0, rows: [], tables: [] } as never
}

const create = (id: string, name: string) => ({ resource: 'identities', operation: 'create', id, after: { name } })
const number = (id: string, value: number) => ({ resource: 'identities', id, after: { tags: { number: value } } })

const write = (kind: Write['kind'], subject: string, rest: Partial<Write> = {}): Write => ({
  ...{ kind, subject, node: 'n', begun: 0, ended: 10, result: 'acknowledged' },
  ...rest,
})

const grant = (subject: string, begun: number, isGranted: boolean): Grant => ({
  ...{ kind: 'session', subject, begun, ended: begun + 5, node: 'n', isGranted },
})

function judge(
  log: readonly LoggedCommit[],
  evidence: Partial<Pick<History, 'writes' | 'reads' | 'grants'>>,
): string[] {
  const history = new History()
  for (const kind of ['writes', 'reads', 'grants'] as const) history[kind].push(...((evidence[kind] ?? []) as never[]))
  return findViolations(log, history, LEASE_MS)
}

describe('the judge of a run', () => {
  it('finds nothing in a history that keeps the promises', () => {
    const log = [commit(1, [create('i', 'a')]), commit(2, [number('i', 1)]), commit(3, [number('i', 2)])]
    const writes = [
      write('create', 'a', { id: 'i' }),
      write('create', 'b', { result: 'unknown' }),
      write('count', 'i', { value: 1, begun: 20, ended: 30 }),
      write('count', 'i', { value: 2, begun: 40, ended: 50 }),
      write('end session', 's', { begun: 60, ended: 70 }),
    ]
    const reads = [{ subject: 'i', value: 1, node: 'n', begun: 32, ended: 33 }]
    const grants = [grant('s', 50, true), grant('s', 3_000, true), grant('s', 9_000, false)]
    expect(judge(log, { writes, reads, grants })).toEqual([])
  })

  it('finds a gap, and a commit that is in the log twice', () => {
    expect(judge([commit(1, []), commit(3, [])], {})).toHaveLength(1)
    expect(judge([commit(1, []), { ...commit(2, []), id: 'c1' }], {})).toHaveLength(1)
  })

  it('finds an acknowledged record that the log lacks, has under another id, or has twice', () => {
    const writes = [write('create', 'a', { id: 'i' })]
    expect(judge([commit(1, [])], { writes })).toHaveLength(1)
    expect(judge([commit(1, [create('other', 'a')])], { writes })).toHaveLength(1)
    expect(judge([commit(1, [create('i', 'a')]), commit(2, [create('j', 'a')])], { writes })).toHaveLength(1)
  })

  it('finds a refused record that the log has', () => {
    const writes = [write('create', 'a', { result: 'refused' })]
    expect(judge([commit(1, [create('i', 'a')])], { writes })).toHaveLength(1)
  })

  it('finds an acknowledged number that the log lacks, or has before an earlier one', () => {
    const [first, second] = [
      write('count', 'i', { value: 1, begun: 0, ended: 10 }),
      write('count', 'i', { value: 2, begun: 20, ended: 30 }),
    ]
    expect(judge([commit(1, [number('i', 1)])], { writes: [first, second] })).toHaveLength(1)
    const reversed = [commit(1, [number('i', 2)]), commit(2, [number('i', 1)])]
    expect(judge(reversed, { writes: [first, second] })).toHaveLength(1)
  })

  it('finds a number that was shown and never committed', () => {
    const writes = [write('count', 'i', { value: 1, result: 'unknown' })]
    const reads = [{ subject: 'i', value: 1, node: 'n', begun: 12, ended: 13 }]
    expect(judge([commit(1, [])], { writes, reads })).toHaveLength(1)
  })

  it('finds a number that a node shows after it has acknowledged or shown a newer one', () => {
    const log = [commit(1, [number('i', 1)]), commit(2, [number('i', 2)])]
    const writes = [
      write('count', 'i', { value: 1, begun: 0, ended: 10 }),
      write('count', 'i', { value: 2, begun: 20, ended: 30 }),
    ]
    const read = (node: string, value: number, begun: number) => ({
      subject: 'i',
      value,
      node,
      begun,
      ended: begun + 2,
    })
    expect(judge(log, { writes, reads: [read('n', 1, 29), read('n', 2, 31), read('other', 1, 31)] })).toEqual([])
    expect(judge(log, { writes, reads: [read('n', 1, 31)] })).toHaveLength(1)
    expect(judge(log, { writes, reads: [read('other', 2, 28), read('other', 1, 31)] })).toHaveLength(1)
    expect(judge(log, { writes, reads: [read('other', 2, 28), read('third', 1, 31)] })).toEqual([])
  })

  it('finds a number that a node shows although a newer one was acknowledged a lease before', () => {
    const log = [commit(1, [number('i', 1)])]
    const writes = [write('count', 'i', { value: 1, begun: 0, ended: 10 })]
    const read = (begun: number) => ({ subject: 'i', value: 0, node: 'other', begun, ended: begun + 2 })
    expect(judge(log, { writes, reads: [read(10 + LEASE_MS - 1)] })).toEqual([])
    expect(judge(log, { writes, reads: [read(10 + LEASE_MS)] })).toHaveLength(1)
  })

  it('finds a right that was granted later than a lease after its end', () => {
    const writes = [write('end session', 's')]
    expect(judge([], { writes, grants: [grant('s', 3_010, true)] })).toEqual([])
    expect(judge([], { writes, grants: [grant('s', 3_011, true)] })).toHaveLength(1)
  })

  it('allows what may have been granted again meanwhile', () => {
    const off = write('set policy', 'p', { value: 0 })
    const on = (result: Write['result']) => write('set policy', 'p', { value: 1, begun: 20, ended: 30, result })
    const late = [{ ...grant('p', 9_000, true), kind: 'policy' as const }]
    for (const result of ['acknowledged', 'unknown'] as const)
      expect(judge([], { writes: [off, on(result)], grants: late })).toEqual([])
    expect(judge([], { writes: [off, on('refused')], grants: late })).toHaveLength(1)
    const again = write('set policy', 'p', { value: 0, begun: 40, ended: 50 })
    expect(judge([], { writes: [off, on('acknowledged'), again], grants: late })).toHaveLength(1)
  })
})
