// `controller export`: writes the configuration of a network as a file.
import type { Client } from '../client/client.ts'
import { assertOutput } from '../foundation/flag-values.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { toYamlText } from '../terminal/yaml.ts'
import type { ReadSection } from './sections.ts'

const HEAD = `# The configuration of a network, as "controller export" writes it.
# "controller plan -f FILE" compares it with a network, "controller apply -f FILE" applies it.
# References are names. The file does not hold:
#   - credentials of identities, enrollments, sessions, and other secrets: identities and routers enroll after it is applied
#   - records that the controller made, unless administrators changed them
#   - states, such as which identities are disabled and which authorities are verified
version: 1
`

export const exportCommand = defineConnectedCommand({
  summary: 'Writes everything that administrators configured as YAML: by names, without secrets.',
  description: 'The order is stable: two exports of one configuration are equal. See docs/network-file.md.',
  example: '> network.yaml',
  async run({ client, flags, print }) {
    assertOutput(flags.output, 'export', 'YAML', ['yaml'])
    await print({ kind: 'pieces', pieces: renderNetwork(client) })
  },
})

async function* renderNetwork(client: Client): AsyncIterable<string> {
  let previous: string | undefined
  for await (const item of client.items('/controller/network')) {
    const { resource, records } = item as ReadSection
    // The head is written with the first section, so that a rejected request leaves stdout empty.
    const head = previous === undefined ? HEAD : ''
    const text = await toYamlText({ [resource]: records }, 0)
    // Only the first section of a resource names it.
    yield head + (resource === previous ? text.slice(text.indexOf('\n') + 1) : text)
    previous = resource
  }
}
