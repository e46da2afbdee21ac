// The description of the API that the build wrote beside the commands.
import { readFileSync } from 'node:fs'
import type { ApiDescription } from '../../src/client/api-description.ts'

let read: ApiDescription | undefined

export function loadApiDescription(): ApiDescription {
  read ??= JSON.parse(readFileSync(new URL('../api.json', import.meta.url), 'utf8')) as ApiDescription
  return read
}
