// Posture responses: the bodies in which clients report about their machines, by their type.
import { type Fields, f } from '../schema/fields.ts'
import { toHexDigits } from '../schema/hexadecimal.ts'
import { listOf, requiredObject, text, typed, whole } from '../schema/json-schema.ts'
import { postureChecks } from './posture-checks.ts'

// Limits of the data that is stored of one client; no operating system has longer paths, and no machine more addresses.
const MAX_TEXT = 255
const MAX_PATH = 4_096
const MAX_ADDRESSES = 256
const MAX_SIGNERS = 64

/** Reports are not refused for an entry that is not hexadecimal: an entry without digits says nothing. */
const hexDigits = (maxItems: number) =>
  ({
    schema: typed<string[]>({ type: 'array', items: { type: 'string', maxLength: MAX_TEXT }, maxItems }),
    normalize: (values: string[]) => [...new Set(values.map(toHexDigits))].filter((digits) => digits !== '').sort(),
  }) as const

const addresses = hexDigits(MAX_ADDRESSES)
const signers = hexDigits(MAX_SIGNERS)

/** By type: the members besides `id` and `typeId`. Several processes are reported one by one. */
export const postureResponseTypes = {
  OS: {
    type: f.text({ required: true, maxLength: MAX_TEXT, summary: 'The operating system, such as Windows.' }),
    version: f.text({ required: true, maxLength: MAX_TEXT, summary: 'Its version, such as 10.0.19045.' }),
    build: f.text({ maxLength: MAX_TEXT, nullable: true, acceptsNull: true, summary: 'Its build.' }),
  },
  DOMAIN: { domain: f.text({ required: true, maxLength: MAX_TEXT, summary: 'The domain the machine is joined to.' }) },
  MAC: {
    macAddresses: f.json(addresses.schema, {
      required: true,
      normalize: addresses.normalize,
      summary: 'The network addresses of the machine, with or without separators.',
    }),
  },
  PROCESS: {
    path: f.text({ maxLength: MAX_PATH, acceptsNull: true, summary: 'The path of the program.' }),
    isRunning: f.bool({ acceptsNull: true, summary: 'Whether it runs.' }),
    hash: f.hex({ maxLength: MAX_TEXT, nullable: true, acceptsNull: true, summary: 'The SHA-512 of the program.' }),
    signerFingerprints: f.json(signers.schema, {
      acceptsNull: true,
      normalize: signers.normalize,
      summary: 'The fingerprints of the certificates that signed it.',
    }),
  },
  ENDPOINT_STATE: {
    woken: f.bool({ acceptsNull: true, summary: 'Whether the machine has woken just now.' }),
    unlocked: f.bool({ acceptsNull: true, summary: 'Whether it was unlocked just now.' }),
  },
} as const satisfies Record<string, Fields>

/** A service whose state has changed. */
const changedService = requiredObject({
  id: text,
  name: text,
  postureQueryType: { type: 'string', enum: Object.keys(postureChecks.variants ?? {}) },
  timeout: whole,
  timeoutRemaining: whole,
})

export const acceptedResponses = requiredObject({ services: listOf(changedService) })
