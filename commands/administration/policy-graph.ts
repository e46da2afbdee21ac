// `controller policy graph`: draws who reaches what, and through which policy.
import { Flags } from '@oclif/core'
import type { Client } from '../client/client.ts'
import { quoteText, resolvePathId } from '../client/names.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { describeRest, type Graph, GraphBuilder } from '../terminal/pictures/graph.ts'

/** A record of either end with the policies that link it, as the questions who and what return it. */
interface Linked extends Named {
  readonly policies: readonly Named[]
  readonly grants: readonly Grant[]
}

/** A policy that links both ends, and whether its posture checks pass. */
interface Grant {
  readonly policyId: string
  readonly type: 'Dial' | 'Bind'
  /** The roles that match, such as `#staff → #web`. */
  readonly roles: string
  readonly evidence: 'passing' | 'failing' | 'unknown'
  readonly unmetCheckIds: readonly string[]
}

interface Named {
  readonly id: string
  readonly name: string
}

/** A link of an identity with a service, by a policy. */
interface Link {
  readonly identity: Named
  readonly service: Named
  readonly policy: Named
  readonly grant: Grant
}

/** A page of a list, and how many records follow it. */
interface Page<T> {
  readonly items: readonly T[]
  readonly restCount: number
}

/** The part of a network that a picture shows. */
interface Selection {
  readonly query: string
  readonly max: number
}

const DEFAULT_MAX = 50

export const policyGraph = defineConnectedCommand({
  summary: 'Draws who reaches what, and through which policy; refused paths are dashed, with their reason.',
  description:
    'Without a choice it draws the whole network: identities and services if there are few, otherwise the policies with their roles.',
  flags: {
    identity: Flags.string({ description: 'What this identity reaches.', helpValue: 'NAME|ID' }),
    service: Flags.string({ description: 'Who reaches this service.', helpValue: 'NAME|ID' }),
    role: Flags.string({ description: 'What the identities with this role reach.', helpValue: '#ROLE' }),
    type: Flags.option({ options: ['dial', 'bind'] as const, description: 'Only dialing, or only hosting.' })(),
    max: Flags.integer({
      description: `How many identities and services it draws at most. Default: ${DEFAULT_MAX}.`,
      min: 1,
      max: 500,
    }),
  },
  draws: 'picture',
  example: '--identity laptop -o svg > laptop.svg',
  async run({ client, flags, print }) {
    const { identity, service, role, type } = flags as Readonly<Record<string, string | undefined>>
    if ([identity, service, role].filter((choice) => choice !== undefined).length > 1)
      throw makeUsageError('choose one of --identity, --service and --role')
    const max = (flags.max as number | undefined) ?? DEFAULT_MAX
    const query = type === undefined ? '' : `&type=${type === 'dial' ? 'Dial' : 'Bind'}`
    const selection = { query, max }
    const graph =
      identity !== undefined
        ? await drawIdentity(client, identity, selection)
        : service !== undefined
          ? await drawService(client, service, selection)
          : role !== undefined
            ? await drawRole(client, role, selection)
            : await drawNetwork(client, selection)
    await print({ kind: 'picture', graph })
  },
})

async function drawIdentity(client: Client, name: string, selection: Selection): Promise<Graph> {
  const identity = await readNamed(client, 'identities', name)
  const { links, restCount } = await listReach(client, identity, selection)
  return drawLinks(client, links, [identity], {
    title: `What ${identity.name} reaches`,
    omitted: describeRest(restCount, 'service', 'services'),
  })
}

async function drawService(client: Client, name: string, { query, max }: Selection): Promise<Graph> {
  const service = await readNamed(client, 'services', name)
  const path = `/controller/policy/who/${service.id}?sort=name&limit=${max}${query}`
  const { items, restCount } = await readPage<Linked>(client, path)
  const links = items.flatMap((item) => listGrants(item).map((granted) => ({ identity: item, service, ...granted })))
  return drawLinks(client, links, [], {
    title: `Who reaches ${service.name}`,
    omitted: describeRest(restCount, 'identity', 'identities'),
  })
}

async function drawRole(client: Client, role: string, selection: Selection): Promise<Graph> {
  const attribute = role.replace(/^#/, '')
  const filter = encodeURIComponent(`anyOf(roleAttributes) = ${quoteText(attribute)}`)
  const { items, restCount } = await readPage<Named>(
    client,
    `/identities?sort=name&limit=${selection.max}&filter=${filter}`,
  )
  const reached = await listReachOfAll(client, items, selection)
  return drawLinks(client, reached.links, items, {
    title: `What the identities with #${attribute} reach`,
    omitted: joinRest([
      describeRest(restCount, 'identity', 'identities'),
      describeRest(reached.restCount, 'service', 'services'),
    ]),
  })
}

/** The whole network: its identities and services if they fit, otherwise its policies. */
async function drawNetwork(client: Client, selection: Selection): Promise<Graph> {
  const { max } = selection
  const identities = await readPage<Named>(client, `/identities?sort=name&limit=${max}`)
  const services = await readPage<Named>(client, '/services?limit=1')
  if (identities.items.length + identities.restCount + services.items.length + services.restCount > max)
    return drawPolicies(client, selection)
  const { links } = await listReachOfAll(client, identities.items, selection)
  return drawLinks(client, links, [], { title: 'Who reaches what' })
}

interface PolicyRecord extends Named {
  readonly type: 'Dial' | 'Bind'
  readonly identityRolesDisplay: readonly RoleDisplay[]
  readonly serviceRolesDisplay: readonly RoleDisplay[]
  readonly postureCheckRolesDisplay: readonly RoleDisplay[]
}

interface RoleDisplay {
  readonly role: string
  readonly name: string
}

/** The policies of a network that is too large for its identities: what they let meet, by role. */
async function drawPolicies(client: Client, { query, max }: Selection): Promise<Graph> {
  const { items, restCount } = await readPage<PolicyRecord>(
    client,
    `/service-policies?sort=name&limit=${max}${query === '' ? '' : `&filter=${encodeURIComponent(`type = ${query.endsWith('Dial') ? 1 : 2}`)}`}`,
  )
  const graph = new GraphBuilder()
  for (const policy of items) {
    const { id, name, type } = policy
    const checks = policy.postureCheckRolesDisplay.map(({ name: check }) => check)
    const label = [name, toVerb(type), ...(checks.length === 0 ? [] : [`if ${checks.join(' ')}`])]
    graph.addNode({ id, kind: 'policy', label })
    for (const { role, name: shown } of policy.identityRolesDisplay) {
      graph.addNode({ id: `identities ${role}`, kind: 'role', label: [shown] })
      graph.addEdge({ from: `identities ${role}`, to: id, label: [] })
    }
    for (const { role, name: shown } of policy.serviceRolesDisplay) {
      graph.addNode({ id: `services ${role}`, kind: 'service', label: [shown] })
      graph.addEdge({ from: id, to: `services ${role}`, label: [] })
    }
  }
  const grouped = `Identities and services are grouped by role; --max draws up to 500 of them.`
  const omitted = joinRest([grouped, describeRest(restCount, 'policy', 'policies')])
  return graph.build({ title: 'Which roles reach what', omitted })
}

async function listReachOfAll(client: Client, identities: readonly Named[], selection: Selection) {
  const links: Link[] = []
  let restCount = 0
  for (const identity of identities) {
    const reached = await listReach(client, identity, selection)
    links.push(...reached.links)
    restCount += reached.restCount
  }
  return { links, restCount }
}

async function listReach(client: Client, identity: Named, { query, max }: Selection) {
  const path = `/controller/policy/what/${identity.id}?sort=name&limit=${max}${query}`
  const { items, restCount } = await readPage<Linked>(client, path)
  const links = items.flatMap((item) => listGrants(item).map((granted) => ({ identity, service: item, ...granted })))
  return { links, restCount }
}

/** The policies that link a record, and why each does. */
function listGrants({ policies, grants }: Linked): readonly Pick<Link, 'policy' | 'grant'>[] {
  const byId = new Map(policies.map((policy) => [policy.id, policy]))
  return grants.flatMap((grant) => {
    const policy = byId.get(grant.policyId)
    return policy ? [{ policy, grant }] : []
  })
}

/** Identities, policies and services, with what matches on the arrows. @param alone identities that are drawn though they reach nothing */
async function drawLinks(
  client: Client,
  links: readonly Link[],
  alone: readonly Named[],
  rest: Omit<Graph, 'nodes' | 'edges'>,
): Promise<Graph> {
  const checkNames = await readCheckNames(client, links)
  const graph = new GraphBuilder()
  for (const { id, name } of alone) graph.addNode({ id, kind: 'identity', label: [name] })
  for (const { identity, service, policy, grant } of links) {
    const { type, roles, evidence, unmetCheckIds } = grant
    const [subjectRole = '', objectRole = ''] = roles.split(' → ')
    const names = unmetCheckIds.map((id) => checkNames.get(id) ?? id).join(', ')
    const reason = evidence === 'failing' ? `fails ${names}` : `nothing is known for ${names}`
    graph.addNode({ id: identity.id, kind: 'identity', label: [identity.name] })
    graph.addNode({ id: policy.id, kind: 'policy', label: [policy.name, toVerb(type)] })
    graph.addNode({ id: service.id, kind: 'service', label: [service.name] })
    graph.addEdge({
      from: identity.id,
      to: policy.id,
      label: evidence === 'passing' ? [subjectRole] : [subjectRole, reason],
      isRefused: evidence !== 'passing',
    })
    graph.addEdge({ from: policy.id, to: service.id, label: [objectRole] })
  }
  return graph.build(rest)
}

async function readCheckNames(client: Client, links: readonly Link[]): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(links.flatMap(({ grant }) => grant.unmetCheckIds))]
  if (ids.length === 0) return new Map()
  const filter = encodeURIComponent(`id in [${ids.map(quoteText).join(',')}]`)
  const { items } = await readPage<Named>(client, `/posture-checks?limit=500&filter=${filter}`)
  return new Map(items.map(({ id, name }) => [id, name]))
}

async function readNamed(client: Client, plural: string, text: string): Promise<Named> {
  const id = await resolvePathId(client, plural, text)
  const { data } = await client.call('GET', `/${plural}/${id}`)
  return data as Named
}

async function readPage<T>(client: Client, path: string): Promise<Page<T>> {
  const { data, meta } = await client.call('GET', path)
  const items = data as readonly T[]
  return { items, restCount: Math.max(0, (meta.pagination?.totalCount ?? items.length) - items.length) }
}

function toVerb(type: 'Dial' | 'Bind'): string {
  return type === 'Dial' ? 'dials' : 'hosts'
}

function joinRest(parts: readonly (string | undefined)[]): string | undefined {
  const present = parts.filter((part) => part !== undefined)
  return present.length === 0 ? undefined : present.join(' ')
}
