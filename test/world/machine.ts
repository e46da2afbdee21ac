// Tests that need something of the machine that it lacks are skipped, and the output says what that is.

const printed = new Set<string>()

/** Whether the machine lacks what tests need, which is printed. */
export function lacks(what: string, isThere: boolean): boolean {
  if (!isThere && !printed.has(what)) {
    printed.add(what)
    process.stderr.write(`skipped: the tests that need ${what}, which this machine lacks\n`)
  }
  return !isThere
}
