// Selects parts of a result by a JMESPath expression.
import { makeUsageError } from '../foundation/exit-codes.ts'

/**
 * Returns the selection of the expression. @throws CommandError with exit code 2 if it is not a JMESPath expression, or does not fit
 * the result
 */
export async function selectByQuery(expression: string, value: unknown): Promise<unknown> {
  const { search } = await import('@jmespath-community/jmespath')
  try {
    return search(value as never, expression)
  } catch (error) {
    throw makeUsageError(`--query: ${(error as Error).message}`, { field: 'query', hint: 'controller help output' })
  }
}

/** Text as it is; a list of texts one by one; undefined for other values, which are printed as JSON. */
export function toPlainLines(value: unknown): string[] | undefined {
  const values = Array.isArray(value) ? value : [value]
  const isPlain = values.every((one) => ['string', 'number', 'boolean'].includes(typeof one))
  return isPlain ? values.map(String) : undefined
}
