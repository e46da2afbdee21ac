// The three kinds of policy, and records of each kind that they name.
import type { Management } from './management.ts'
import { newName } from './names.ts'

/** A record of each kind that policies name, and how it is made. */
const records = {
  identities: (roleAttributes: string[]) => ({ type: 'Device', isAdmin: false, roleAttributes }),
  services: (roleAttributes: string[]) => ({ encryptionRequired: true, roleAttributes }),
  'edge-routers': (roleAttributes: string[]) => ({ roleAttributes }),
  'posture-checks': (roleAttributes: string[]) => ({ typeId: 'DOMAIN', domains: ['x'], roleAttributes }),
} as const
export type Kind = keyof typeof records

/** Makes one, with these attributes. */
export async function makeRecord(manage: Management, kind: Kind, roleAttributes: string[] = []) {
  const name = newName(kind)
  return { name, id: await manage.make(kind, { name, ...records[kind](roleAttributes) }) }
}

/** By kind of policy: what it needs besides its sides, and which records each side is about. */
export const kinds = [
  {
    plural: 'service-policies',
    more: { type: 'Dial' },
    sides: { identityRoles: 'identities', serviceRoles: 'services', postureCheckRoles: 'posture-checks' },
  },
  {
    plural: 'edge-router-policies',
    more: {},
    sides: { identityRoles: 'identities', edgeRouterRoles: 'edge-routers' },
  },
  {
    plural: 'service-edge-router-policies',
    more: {},
    sides: { serviceRoles: 'services', edgeRouterRoles: 'edge-routers' },
  },
] as const
