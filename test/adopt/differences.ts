// Compares records of another program with those of this one, in which a few forms of the same differ.

const isNothing = (value: unknown) =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0)

/** Returns the paths of the members that `actual` has not as `expected` has them. It may have more. */
export function listDifferences(expected: unknown, actual: unknown, path = ''): string[] {
  if (isNothing(expected) && isNothing(actual)) return []
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return [path]
    return expected.flatMap((each, index) => listDifferences(each, actual[index], `${path}[${index}]`))
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null) return [path]
    return Object.entries(expected).flatMap(([name, member]) =>
      listDifferences(member, (actual as Readonly<Record<string, unknown>>)[name], `${path}.${name}`),
    )
  }
  // Tokens are signed again, and say the same.
  const [former, own] = [readClaims(expected), readClaims(actual)]
  if (former && own) return listDifferences(former, own, path)
  return expected === actual ? [] : [`${path}: ${expected} became ${actual}`]
}

function readClaims(value: unknown): object | undefined {
  if (typeof value !== 'string' || !value.startsWith('eyJ')) return undefined
  // Routers are served at the first address of clients, too, and new ones are sent there.
  const { ctrls: _, ...claims } = JSON.parse(Buffer.from(value.split('.')[1] ?? '', 'base64url').toString())
  return claims
}
