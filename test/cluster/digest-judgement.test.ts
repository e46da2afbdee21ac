// Controllers whose rows differ agree on which of them rebuilds its own.
import { describe, expect, it } from 'vitest'
import { judgeDigests, type NodeDigests } from '../../src/storage/cluster/digest-judgement.ts'

const node = (name: string, rows: string, isRebuilt = false): NodeDigests => ({
  ...{ node: name, isRebuilt },
  digests: { identities: rows, services: 'same' },
})

/** The verdict of each on itself. */
function judgeAll(...nodes: NodeDigests[]): string[] {
  return nodes.map((own) => {
    const others = nodes.filter((other) => other !== own)
    return judgeDigests(own, others).verdict
  })
}

describe('controllers that differ', () => {
  it('do nothing if they do not', () => {
    expect(judgeAll(node('a', '1'), node('b', '1'))).toEqual(['same', 'same'])
    expect(judgeAll(node('a', '1'))).toEqual(['same'])
  })

  it('rebuild if fewer have the same rows, and name the tables', () => {
    expect(judgeAll(node('a', '1'), node('b', '2'), node('c', '2'))).toEqual([
      ...['own rows', 'rows of others', 'rows of others'],
    ])
    expect(judgeDigests(node('a', '1'), [node('b', '2'), node('c', '2')])).toMatchObject({
      ...{ tables: ['identities'], others: ['b', 'c'] },
    })
  })

  it('are right if they are the first by name of as many', () => {
    expect(judgeAll(node('b', '2'), node('a', '1'))).toEqual(['own rows', 'rows of others'])
  })

  it('are right if their rows were rebuilt, whatever the others are', () => {
    expect(judgeAll(node('a', '1'), node('b', '1'), node('c', '2', true))).toEqual([
      ...['own rows', 'own rows', 'rows of others'],
    ])
  })

  it('do not rebuild again if both were rebuilt', () => {
    expect(judgeAll(node('a', '1', true), node('b', '2', true))).toEqual(['unclear', 'unclear'])
  })
})
