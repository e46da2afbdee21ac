// Filters that are made to cost much: they are refused, or their work is done where it holds up nobody.
import { describe, expect, it } from 'vitest'
import { parseQuery } from '../../src/filter/parse.ts'

const refusal = (text: string) => {
  try {
    parseQuery(text)
  } catch (error) {
    return (error as { publicCause: { message: string } }).publicCause.message
  }
  return undefined
}

describe('a date-time that does not end', () => {
  it.each([
    ['many of them', 'datetime('.repeat(1_800)],
    ['white space', `datetime(${' '.repeat(16_000)}`],
    ['text that is none', `datetime(${'a'.repeat(16_000)}`],
  ])('is refused where the first begins: %s', (_what, text) => {
    expect(refusal(`createdAt > ${text}`)).toBe('a date-time that does not end, at line 1, column 13')
  })

  it('is read with white space around it', () => {
    expect(
      refusal(`createdAt > datetime(${'\t'.repeat(8_000)}2024-01-01T00:00:00Z${'\n'.repeat(8_000)})`),
    ).toBeUndefined()
  })
})
