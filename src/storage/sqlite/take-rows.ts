// Reads rows of a statement batch by batch.

/** Takes the next rows of an iterator, at most `maxCount`; fewer only at its end. */
export function takeRows(rows: Iterator<unknown>, maxCount: number): unknown[] {
  const batch: unknown[] = []
  while (batch.length < maxCount) {
    const next = rows.next()
    if (next.done) break
    batch.push(next.value)
  }
  return batch
}
