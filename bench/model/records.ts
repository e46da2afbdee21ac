// The records of a model: what each is called, and by which attributes policies find it.
//
// Identities belong to a team and a site; each team has one service policy and one edge router policy. The services are
// spread over as many groups as there are policies, and a policy grants as many groups as make some twenty services.
import { seeded } from './random.ts'
import type { Model } from './sizes.ts'

const SEEN_SERVICES = 20
const SITES = 40
const REGIONS = 10

const padded = (at: number) => String(at).padStart(6, '0')

export const identityName = (at: number) => `identity-${padded(at)}`
export const identityNumber = (name: string) => Number(name.slice('identity-'.length))
export const serviceName = (at: number) => `service-${padded(at)}`
export const team = (at: number, { policies }: Model) => `team-${at % policies}`
export const site = (at: number) => `site-${Math.floor(seeded(at)() * SITES)}`
const region = (at: number, { edgeRouters }: Model) => `region-${at % regionsOf(edgeRouters)}`
const regionsOf = (edgeRouters: number) => Math.min(REGIONS, edgeRouters)

/** A body that makes an identity which belongs to the team and the site of its number. */
export function identityBody(name: string, at: number, model: Model) {
  return { name, type: 'Device', isAdmin: false, roleAttributes: [team(at, model), site(at)] }
}

export function serviceBody(at: number, { policies }: Model) {
  return { name: serviceName(at), encryptionRequired: true, roleAttributes: [`group-${at % policies}`] }
}

export function servicePolicyBody(at: number, model: Model) {
  const { services, policies } = model
  const groups = Math.min(policies, Math.ceil((SEEN_SERVICES * policies) / services))
  const serviceRoles = Array.from({ length: groups }, (_, next) => `#group-${(at + next) % policies}`)
  return {
    name: `policy-${padded(at)}`,
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`#${team(at, model)}`],
    serviceRoles,
  }
}

/** A machine with Linux 6 passes, whatever the number. */
export function postureCheckBody(at: number) {
  const operatingSystems = [{ type: 'Linux', versions: ['>=6.0.0 <7.0.0'] }, { type: 'Windows' }]
  return { name: `check-${padded(at)}`, typeId: 'OS', operatingSystems }
}

export function edgeRouterBody(at: number, model: Model) {
  return { name: `router-${padded(at)}`, roleAttributes: [region(at, model)] }
}

export function edgeRouterPolicyBody(at: number, model: Model) {
  return {
    name: `router-policy-${padded(at)}`,
    semantic: 'AnyOf',
    identityRoles: [`#${team(at, model)}`],
    edgeRouterRoles: [`#${region(at, model)}`],
  }
}

export const serviceEdgeRouterPolicyBody = {
  name: 'every-service-everywhere',
  semantic: 'AnyOf',
  serviceRoles: ['#all'],
  edgeRouterRoles: ['#all'],
}
