// The network as a file: exports what administrators configured.
import type { Context } from '../../src/context.ts'
import { exportNetwork } from '../../src/network-file/export.ts'
import { anyObject, listOf, requiredObject, text } from '../../src/schema/json-schema.ts'
import { streamItems } from '../list-stream.ts'
import { type AnyOperation, defineOperation } from '../operation.ts'

const COMMON = { apis: ['management'], topic: 'network', isOwn: true } as const

const sectionSchema = requiredObject({
  resource: { ...text, description: 'The plural name of the resource.' },
  records: listOf({ ...anyObject, description: 'Records by the members that administrators set, references by name.' }),
})

export const networkFileOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'exportNetwork',
    method: 'GET',
    path: '/controller/network',
    summary: 'Exports everything that administrators configured, by names and without secrets, in a stable order.',
    access: { permission: 'network.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: listOf(sectionSchema), isPage: true },
    run: ({ context }) => streamItems(renderSections(context)),
  }),
]

async function* renderSections(context: Context): AsyncGenerator<readonly string[]> {
  for await (const section of exportNetwork(context)) yield [JSON.stringify(section)]
}
