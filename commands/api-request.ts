// `controller api`: any request, for what no command does yet.
import { Flags } from '@oclif/core'
import { requiredArgument } from './arguments.ts'
import { CLIENT_PATH, MANAGEMENT_PATH } from './client/client.ts'
import { defineConnectedCommand } from './connected.ts'
import { makeUsageError } from './exit-codes.ts'
import { readJson, readText } from './input.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export const apiRequest = defineConnectedCommand({
  summary: 'Sends any request to the API, and prints what it answers.',
  args: {
    method: requiredArgument({ description: `One of ${METHODS.join(', ')}.` }),
    path: requiredArgument({
      description: `Path and query, below ${MANAGEMENT_PATH}; one that begins with /edge is taken as it is.`,
    }),
  },
  flags: {
    data: Flags.string({
      description: 'The body as JSON; @FILE reads it from a file, - from stdin.',
      helpValue: 'JSON|@FILE',
    }),
    'content-type': Flags.string({ description: 'Type of a body that is no JSON.' }),
    header: Flags.string({ description: 'A further header, NAME: VALUE.', multiple: true, multipleNonGreedy: true }),
  },
  example: "GET '/identities?limit=1'",
  async run({ client, args, flags, print }) {
    const method = (args.method ?? '').toUpperCase()
    if (!METHODS.includes(method)) throw makeUsageError(`${args.method} is none of ${METHODS.join(', ')}`)
    const path = args.path ?? ''
    if (!path.startsWith('/')) throw makeUsageError('a path begins with /', { hint: `/${path}` })
    const type = flags['content-type'] as string | undefined
    const data = flags.data as string | undefined
    const body =
      data === undefined ? undefined : await (type === undefined ? readJson('data', data) : readText('data', data))
    const headers = Object.fromEntries(((flags.header as string[] | undefined) ?? []).map(headerFrom))
    const typed = type === undefined ? headers : { ...headers, 'content-type': type }
    const { reply } = await client.call(method, isWhole(path) ? path : MANAGEMENT_PATH + path, body, typed)
    const isJson = String(reply.headers['content-type'] ?? '').startsWith('application/json')
    const record = isJson ? (JSON.parse(reply.text) as Record<string, unknown>) : undefined
    if (!record) return print({ kind: 'text', text: reply.text })
    // What the API answers is JSON, so that is what is printed unless something else is asked for.
    if (flags.output === undefined) return print({ kind: 'text', text: JSON.stringify(record, null, 2) })
    await print({ kind: 'record', record })
  },
  isPublic: true,
  base: '',
})

/** Whether the path begins at the root of the server. */
function isWhole(path: string): boolean {
  return path.startsWith('/edge/') || path.startsWith('/.well-known/') || path.startsWith(CLIENT_PATH)
}

function headerFrom(given: string): [string, string] {
  const at = given.indexOf(':')
  if (at < 1) throw makeUsageError(`--header takes NAME: VALUE, not ${given}`, { field: 'header' })
  return [given.slice(0, at).trim().toLowerCase(), given.slice(at + 1).trim()]
}
