// Loads the description of the API, which the build writes beside the commands.
import { readFileSync } from 'node:fs'
import type { ApiDescription } from '../../src/client/api-description.ts'

let description: ApiDescription | undefined

/** The description of the API; the file is read once. */
export function loadApiDescription(): ApiDescription {
  description ??= JSON.parse(readFileSync(new URL('../api.json', import.meta.url), 'utf8')) as ApiDescription
  return description
}
