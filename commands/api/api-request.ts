// `controller api`: sends any request, for operations without a command.
import { Flags } from '@oclif/core'
import { CLIENT_PATH, MANAGEMENT_PATH } from '../client/client.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { readJson, readText } from '../foundation/flag-values.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { defineConnectedCommand } from '../framework/connected.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export const apiRequest = defineConnectedCommand({
  summary: 'Sends any request to the API, and prints the response.',
  args: {
    method: requiredArgument({ description: `One of ${METHODS.join(', ')}.` }),
    path: requiredArgument({
      description: `Path and query, below ${MANAGEMENT_PATH}; a path that begins with /edge is sent unchanged.`,
    }),
  },
  flags: {
    data: Flags.string({
      description: 'The body as JSON; @FILE reads it from a file, - from stdin.',
      helpValue: 'JSON|@FILE',
    }),
    'content-type': Flags.string({ description: 'Content type of a body that is not JSON.' }),
    header: Flags.string({
      description: 'An additional header, NAME: VALUE.',
      multiple: true,
      multipleNonGreedy: true,
    }),
  },
  example: "GET '/identities?limit=1'",
  async run({ client, args, flags, print }) {
    const method = (args.method ?? '').toUpperCase()
    if (!METHODS.includes(method))
      throw makeUsageError(`unknown method ${args.method}: must be one of ${METHODS.join(', ')}`)
    // A request has no fragment: the mark is that of a role attribute in the query.
    const path = (args.path ?? '').replaceAll('#', '%23')
    if (!path.startsWith('/')) throw makeUsageError('the path must begin with /', { hint: `/${path}` })
    const type = flags['content-type'] as string | undefined
    const data = flags.data as string | undefined
    const body =
      data === undefined ? undefined : await (type === undefined ? readJson('data', data) : readText('data', data))
    const headers = Object.fromEntries(((flags.header as string[] | undefined) ?? []).map(parseHeader))
    const allHeaders = type === undefined ? headers : { ...headers, 'content-type': type }
    const { reply } = await client.call(method, isAbsolutePath(path) ? path : MANAGEMENT_PATH + path, body, allHeaders)
    const isJson = String(reply.headers['content-type'] ?? '').startsWith('application/json')
    const record = isJson ? (JSON.parse(reply.text) as Record<string, unknown>) : undefined
    if (!record) return print({ kind: 'text', text: reply.text })
    // The API responds with JSON, so JSON is the default output.
    if (flags.output === undefined) return print({ kind: 'text', text: JSON.stringify(record, null, 2) })
    await print({ kind: 'record', record })
  },
  isPublic: true,
  base: '',
})

/** Whether the path begins at the root of the server, not below the management API. */
function isAbsolutePath(path: string): boolean {
  return path.startsWith('/edge/') || path.startsWith('/.well-known/') || path.startsWith(CLIENT_PATH)
}

function parseHeader(text: string): [string, string] {
  const at = text.indexOf(':')
  if (at < 1) throw makeUsageError(`--header must be NAME: VALUE, not ${text}`, { field: 'header' })
  return [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()]
}
