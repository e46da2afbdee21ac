// The flags of `controller adopt` that state one by one what the configuration of OpenZiti's controller says.
import { Flags } from '@oclif/core'
import type { SourceParts } from '../../src/adopt/source-parts.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'

const exclusive = ['from']

const file = (description: string) => Flags.string({ description, helpValue: 'FILE', exclusive })
const address = (description: string) => Flags.string({ description, helpValue: 'HOST:PORT', exclusive })

export const partFlags = {
  'signing-cert': file(
    'The certificate that issues those of identities and routers (edge.enrollment.signingCert.cert).',
  ),
  'signing-key': file('Its key.'),
  ca: Flags.string({
    description:
      'The authorities above it up to the root, and all others that clients and routers trust (identity.ca), as PEM. Can be repeated.',
    helpValue: 'FILE',
    multiple: true,
    multipleNonGreedy: true,
    exclusive,
  }),
  'server-cert': file('The server certificate at the address of clients (identity.server_cert).'),
  'server-key': file('Its key, by which unused enrollment tokens are signed.'),
  'control-cert': file(
    'The certificate whose common name is the id by which routers know the controller (identity.cert).',
  ),
  address: address('The address of the controller that clients have (edge.api.address).'),
  'control-address': address(
    'The address of the controller that routers have (ctrl.options.advertiseAddress, without tls:).',
  ),
  listen: address('Where to listen for clients. Default: the port of --address, on all interfaces.'),
  'control-listen': address('Where to listen for routers. Default: the port of --control-address, on all interfaces.'),
}

const REQUIRED = [
  'database',
  'signing-cert',
  'signing-key',
  'ca',
  'server-cert',
  'server-key',
  'control-cert',
  'address',
  'control-address',
] as const
const ADDRESSES = ['address', 'control-address', 'listen', 'control-listen'] as const

type StatedParts = Readonly<Partial<Record<(typeof REQUIRED)[number] | (typeof ADDRESSES)[number], string | string[]>>>

/** The parts that the flags state. @throws CommandError that names those which are missing */
export function readParts(flags: StatedParts): SourceParts {
  const missing = REQUIRED.filter((name) => flags[name] === undefined)
  if (missing.length > 0) {
    const names = missing.map((name) => `--${name}`).join(', ')
    throw makeUsageError(`--from is missing; to adopt without a configuration, state also ${names}`)
  }
  const text = (name: keyof StatedParts) => String(flags[name])
  for (const name of ADDRESSES)
    if (flags[name] !== undefined && !/^[^/]+:\d{1,5}$/.test(text(name)))
      throw makeUsageError(`--${name} ${text(name)} is not of the form HOST:PORT`)
  return {
    signingCert: text('signing-cert'),
    signingKey: text('signing-key'),
    ca: [flags.ca ?? []].flat(),
    serverCert: text('server-cert'),
    serverKey: text('server-key'),
    controlCert: text('control-cert'),
    address: text('address'),
    controlAddress: text('control-address'),
    ...(flags.listen === undefined ? {} : { listen: text('listen') }),
    ...(flags['control-listen'] === undefined ? {} : { controlListen: text('control-listen') }),
  }
}
