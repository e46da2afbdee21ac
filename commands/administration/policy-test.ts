// `controller policy test`: compares what policies grant with what a file expects.
import { readFile } from 'node:fs/promises'
import type { Client } from '../client/client.ts'
import { resolvePathId } from '../client/names.ts'
import { EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { describeFileError } from '../foundation/file-errors.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { escapeLines } from '../terminal/text.ts'

/** The expectation of a file about an identity and a service. */
interface Expectation {
  readonly identity: string
  readonly service: string
  readonly dial?: boolean
  readonly bind?: boolean
}

/** An expectation, and what policies grant. */
interface Finding {
  readonly identity: string
  readonly service: string
  readonly type: 'dial' | 'bind'
  readonly expected: boolean
  readonly granted: boolean
  readonly passed: boolean
}

export const policyTest = defineConnectedCommand({
  summary: 'Compares what policies grant with what a file expects; exits with 3 if it differs.',
  description: [
    'The file is a list in YAML or JSON, such as: [{identity: laptop, service: web, dial: true, bind: false}].',
    'What is not named is not compared. Posture is not considered.',
  ].join('\n'),
  args: { file: requiredArgument({ description: 'File with the expectations.' }) },
  example: 'expectations.yaml',
  async run({ client, args, print }) {
    const findings: Finding[] = []
    for (const expectation of await readExpectations(args.file ?? '')) {
      findings.push(...(await compare(client, expectation)))
    }
    const failures = findings.filter(({ passed }) => !passed).length
    const lines = findings.map(
      ({ identity, service, type, expected, passed }) =>
        `  ${passed ? '✓' : '✗'} ${identity} ${expected ? 'can' : 'cannot'} ${type} ${service}`,
    )
    const verdict =
      failures === 0
        ? `${findings.length} of ${findings.length} as expected`
        : `${failures} of ${findings.length} differ`
    await print({
      kind: 'done',
      sentence: escapeLines([verdict, '', ...lines].join('\n')),
      facts: { passed: failures === 0, findings },
    })
    return failures === 0 ? EXIT.done : EXIT.denied
  },
})

async function readExpectations(file: string): Promise<Expectation[]> {
  const { parse } = await import('yaml')
  let content: unknown
  try {
    content = parse(await readFile(file, 'utf8'))
  } catch (error) {
    throw makeUsageError(`${file} cannot be read: ${describeFileError(error, file)}`)
  }
  if (Array.isArray(content) && content.length > 0 && content.every(isExpectation)) return content
  throw makeUsageError(`${file} must be a list of expectations with identity, service, and dial or bind`, {
    hint: 'controller policy test --help',
  })
}

function isExpectation(value: unknown): value is Expectation {
  const { identity, service, dial, bind } = (value ?? {}) as Record<string, unknown>
  const isSwitch = (member: unknown) => member === undefined || typeof member === 'boolean'
  const isNamed = typeof identity === 'string' && typeof service === 'string'
  return isNamed && isSwitch(dial) && isSwitch(bind) && (dial !== undefined || bind !== undefined)
}

async function compare(client: Client, { identity, service, dial, bind }: Expectation): Promise<Finding[]> {
  const identityId = await resolvePathId(client, 'identities', identity)
  const serviceId = await resolvePathId(client, 'services', service)
  const filter = encodeURIComponent(`id = "${decodeURIComponent(serviceId)}"`)
  const { data } = await client.call('GET', `/controller/policy/what/${identityId}?filter=${filter}`)
  const [{ permissions = [] } = {}] = data as readonly { permissions?: readonly string[] }[]
  const expectations = [
    ['dial', dial, permissions.includes('Dial')],
    ['bind', bind, permissions.includes('Bind')],
  ] as const
  return expectations.flatMap(([type, expected, granted]) =>
    expected === undefined ? [] : [{ identity, service, type, expected, granted, passed: expected === granted }],
  )
}
