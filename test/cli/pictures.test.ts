// Pictures of a network: `controller policy graph`, and the languages in which pictures are written.
import { beforeAll, describe, expect, it } from 'vitest'
import { renderDot, renderSvg } from '../../commands/terminal/pictures/dot.ts'
import { type Graph, renderGraphText } from '../../commands/terminal/pictures/graph.ts'
import { renderMermaid } from '../../commands/terminal/pictures/mermaid.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { writeProfiles } from '../world/profiles.ts'
import { TestNetwork } from '../world/router/network.ts'
import { useController } from '../world/use-controller.ts'

const env = cleanEnvironment()
const world = useController()
const cli = (...args: string[]) => commandLine(args, env)

async function create(...args: string[]): Promise<void> {
  const { code, stderr } = await cli(...args)
  if (code !== 0) throw new Error(stderr)
}

async function draw(...args: string[]): Promise<Graph> {
  const { code, stdout, stderr } = await cli('policy', 'graph', ...args, '-o', 'json')
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

/** The edges by the names of their ends, with `✗` for those that are refused. */
function toLines({ nodes, edges }: Graph): string[] {
  const names = new Map(nodes.map(({ id, label }) => [id, label[0]]))
  return edges
    .map(({ from, to, label, isRefused }) => {
      const ends = `${names.get(from)} ${isRefused ? '✗' : '→'} ${names.get(to)}`
      return label.length === 0 ? ends : `${ends}: ${label.join(', ')}`
    })
    .sort()
}

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  writeProfiles(env, { test: { url, rootPem, token: await world.admin() } })
  const policy = (name: string, type: string, identities: string, services: string, ...more: string[]) =>
    create(
      ...['service-policy', 'create', name, '--type', type, '--semantic', 'AnyOf'],
      ...['--identity-roles', identities, '--service-roles', services, ...more],
    )
  for (const [name, role] of [
    ['laptop', 'staff'],
    ['phone', 'staff'],
    ['server', 'hosts'],
  ] as const)
    await create('identity', 'create', name, '--role', role)
  await create('service', 'create', 'web', '--role', 'web')
  await create('service', 'create', 'payroll', '--role', 'hr')
  await create('posture-check', 'create', 'domain', '--type', 'DOMAIN', '--domains', 'corp.example')
  await policy('staff-web', 'Dial', '#staff', '#web')
  await policy('staff-hr', 'Dial', '@laptop', '#hr', '--posture-check-roles', '@domain')
  await policy('hosts-all', 'Bind', '#hosts', '#all')
})

describe('the graph of policies', () => {
  it('shows what an identity reaches, and refuses a path whose posture check has not passed', async () => {
    expect(toLines(await draw('--identity', 'laptop'))).toEqual([
      'laptop → staff-web: #staff',
      'laptop ✗ staff-hr: @laptop, nothing is known for domain',
      'staff-hr → payroll: #hr',
      'staff-web → web: #web',
    ])
  })

  it('shows who reaches a service, all or by type', async () => {
    expect(toLines(await draw('--service', 'web', '--type', 'bind'))).toEqual([
      'hosts-all → web: #all',
      'server → hosts-all: #hosts',
    ])
    const { nodes } = await draw('--service', 'web')
    expect(nodes.filter(({ kind }) => kind === 'identity').map(({ label }) => label)).toEqual([
      ['laptop'],
      ['phone'],
      ['server'],
    ])
  })

  it('shows what the identities with a role reach, also those that reach nothing', async () => {
    await cli('identity', 'create', 'visitor', '--role', 'guests')

    expect(await draw('--role', '#guests')).toMatchObject({
      nodes: [{ kind: 'identity', label: ['visitor'] }],
      edges: [],
    })
    expect(toLines(await draw('--role', 'staff'))).toContain('phone → staff-web: #staff')
  })

  it('shows a small network whole, and a large one by its roles, with what it leaves out', async () => {
    expect(toLines(await draw())).toHaveLength(8)
    const large = await draw('--max', '2')
    expect(toLines(large)).toEqual(['#hosts → hosts-all', '@laptop → staff-hr', 'hosts-all → #all', 'staff-hr → #hr'])
    expect(large.nodes.find(({ label }) => label[0] === 'staff-hr')?.label).toEqual(['staff-hr', 'dials', 'if @domain'])
    expect(large.omitted).toMatch(/grouped by role.*1 more policy/)
    expect((await draw('--service', 'web', '--max', '1')).omitted).toMatch(/2 more identities/)
  })

  it('is text without -o, and refuses two choices, names that do not exist and formats of records', async () => {
    const text = await cli('policy', 'graph', '--identity', 'phone')

    expect(text.stdout).toBe('What phone reaches\n\nphone\n  → staff-web, dials  (#staff)\n    → web  (#web)\n')
    expect((await cli('policy', 'graph', '--identity', 'a', '--service', 'b')).code).toBe(2)
    expect((await cli('policy', 'graph', '--identity', 'nope')).code).toBe(5)
    expect((await cli('policy', 'graph', '-o', 'csv')).code).toBe(2)
  })
})

describe('the map of routers', () => {
  it('shows routers with links, latency, cost and circuits, and those that are offline', async () => {
    const network = await TestNetwork.start()
    try {
      const { world, address } = network
      writeProfiles(env, { test: { ...address, token: await world.admin() } })
      const [near, far, gone] = [await network.router(), await network.router(), await network.router()]
      network.link(near, far, 3)
      const serviceId = await network.service({})
      await network.terminator(serviceId, far, {})
      await near.dial(await network.client(serviceId))
      await gone.wire.close()
      await expect.poll(() => world.controller.routers.connected.get(gone.id)).toBeUndefined()

      const { stdout } = await cli('router', 'map', '-o', 'json')
      const { nodes, edges } = JSON.parse(stdout) as Graph

      const byId = new Map(nodes.map((node) => [node.id, node]))
      expect(byId.get(near.id)?.label.slice(1)).toEqual(['online', '1 circuit'])
      expect(byId.get(gone.id)).toMatchObject({ isInactive: true, label: [expect.any(String), 'offline'] })
      expect(edges).toEqual([{ from: near.id, to: far.id, label: ['3.0 ms, cost 7', '1 circuit'], isRefused: false }])
      expect((await cli('router', 'map', '--max', '2')).stdout).toMatch(/Left out: 1 more router \(--max\)/)
    } finally {
      await network.close()
    }
  })
})

describe('a picture', () => {
  const graph: Graph = {
    title: 'A "title" \\ with\u001b[2Jcontrols',
    nodes: [
      { id: 'a', kind: 'identity', label: ['<b>one</b> & "two"', 'second line'] },
      { id: 'b', kind: 'service', label: ['#web]]'] },
    ],
    edges: [{ from: 'a', to: 'b', label: ['fails |x|'], isRefused: true }],
  }

  it('is SVG whose texts are no markup, with colors for light and dark pages, and dashes where a path is refused', async () => {
    const svg = await renderSvg(graph)

    expect(svg).toMatch(/^<svg [^>]*>\n<style>/)
    expect(svg).toContain('&lt;b&gt;one&lt;/b&gt;')
    expect(svg).toContain('prefers-color-scheme:dark')
    expect(svg).toContain('stroke-dasharray')
    // A page may be of the other kind.
    expect(svg).toMatch(/<polygon fill="white"/)
    expect(svg).toMatch(/prefers-color-scheme:dark\)\{\s*\.graph>polygon\{fill:#1/)
    expect(svg).not.toContain('<b>')
    expect(svg).not.toContain('\u001b')
  })

  it('keeps quotes, backslashes and controls out of the languages that it is written in', () => {
    const dot = renderDot(graph)
    const mermaid = renderMermaid(graph)

    expect(dot).toContain('label="<b>one</b> & \\"two\\"\\nsecond line"')
    expect(dot).toContain('A \\"title\\" \\\\ with')
    expect(mermaid).toContain('n0(["#60;b#62;one#60;/b#62; #38; #34;two#34;<br/>second line"])')
    expect(mermaid).toContain('n0 -.->|"fails |x|"| n1')
    for (const text of [dot, mermaid, renderGraphText(graph)]) expect(text).not.toContain('\u001b')
  })
})
