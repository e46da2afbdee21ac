// The export of a network: everything that administrators configured, by names, without secrets, in a stable order.
import { beforeAll, describe, expect, it } from 'vitest'
import { services } from '../../src/definitions/resources/services.ts'
import { fileResources } from '../../src/maintenance/network-file/file-resources.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { type ConfiguredNetwork, configureNetwork } from '../world/configured-network.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let network: ConfiguredNetwork

beforeAll(async () => {
  people = await People.in(world, 'operator')
  network = await configureNetwork(people)
})

type FileRecord = Readonly<Record<string, unknown>>

async function exportText(): Promise<string> {
  return (await people.ask('GET', '/controller/network')).text
}

async function exportRecords(resource: string): Promise<readonly FileRecord[]> {
  const sections: { resource: string; records: FileRecord[] }[] = JSON.parse(await exportText()).data
  return sections.filter((section) => section.resource === resource).flatMap(({ records }) => records)
}

describe('an export', () => {
  it('has a section for every resource that administrators create, after those that it refers to', async () => {
    const sections: { resource: string }[] = JSON.parse(await exportText()).data
    const names = sections.map(({ resource }) => resource)

    expect(names).toEqual(fileResources.map(({ resource }) => resource.plural))
    for (const [earlier, later] of [
      ['config-types', 'configs'],
      ['configs', 'services'],
      ['services', 'identities'],
      ['external-jwt-signers', 'auth-policies'],
      ['auth-policies', 'identities'],
      ['edge-routers', 'terminators'],
      ['identities', 'service-policies'],
      ['posture-checks', 'service-policies'],
    ] as const) {
      expect(names.indexOf(earlier), `${earlier} before ${later}`).toBeLessThan(names.indexOf(later))
    }
    expect(names).not.toContain('authenticators')
    expect(names).not.toContain('enrollments')
  })

  it('names what records refer to', async () => {
    const [policy] = await exportRecords('service-policies')
    const [config] = await exportRecords('configs')
    const [terminator] = await exportRecords('terminators')
    const identities = await exportRecords('identities')
    const laptop = identities.find(({ name }) => name === 'laptop')

    expect(policy).toMatchObject({ name: 'dial', identityRoles: ['#staff', '@laptop'], serviceRoles: ['@web'] })
    expect(config).toMatchObject({ name: 'web-client', configType: 'ziti-tunneler-client.v1' })
    expect(terminator).toMatchObject({ service: 'web', router: 'edge', binding: 'transport' })
    expect(laptop).toMatchObject({ authPolicy: 'strict', type: 'Device', serviceHostingCosts: { web: 7 } })
    expect(await exportRecords('service-configs')).toEqual([
      { identity: 'laptop', service: 'web', config: 'web-client' },
    ])
  })

  it('holds neither ids nor times nor secrets', async () => {
    const text = await exportText()

    for (const id of network.ids) expect(text).not.toContain(id)
    for (const secret of network.secrets) expect(text).not.toContain(secret)
    expect(text).not.toMatch(/"(id|createdAt|updatedAt|password|token|identitySecret)":/)
  })

  it('is equal byte for byte to the next one', async () => {
    expect(await exportText()).toBe(await exportText())
  })

  it('sorts records by name', async () => {
    const names = (await exportRecords('identities')).map(({ name }) => name)

    expect(names.length).toBeGreaterThan(2)
    expect(names).toEqual([...names].sort())
  })

  it('leaves out what the controller made, until it is changed', async () => {
    expect(await exportRecords('config-types')).toMatchObject([{ name: 'printer.v1' }])
    expect((await exportRecords('auth-policies')).map(({ name }) => name)).toEqual(['strict'])
    expect((await exportRecords('edge-router-policies')).map(({ name }) => name)).toEqual(['all-edge'])
    const names = async () => (await exportRecords('identities')).map(({ name }) => name)
    expect(await names()).not.toContain('Default Admin')
    expect(await names()).not.toContain('edge')

    const { id } = await people.manage('GET', '/identities?filter=name="edge"').then(([record]) => record)
    await people.manage('PATCH', `/identities/${id}`, { roleAttributes: ['tunnelers'] })
    await people.manage('PATCH', '/auth-policies/default', { secondary: { requireTotp: false }, tags: { a: '1' } })

    expect(await names()).toContain('edge')
    expect((await exportRecords('auth-policies')).map(({ name }) => name)).toEqual(['Default', 'strict'])
  })

  it('lists edge routers apart from other routers', async () => {
    expect((await exportRecords('edge-routers')).map(({ name }) => name)).toEqual(['edge'])
    expect((await exportRecords('routers')).map(({ name }) => name)).toEqual(['transit'])
  })

  it('has more records than one page', async () => {
    const before = await exportRecords('services')
    await world.system.write(async (tx) => {
      for (let at = 0; at < 450; at++)
        await world.controller.entities.insert(tx, services, newEntity(tx, services, { name: `many ${at}` }))
    })

    expect(await exportRecords('services')).toHaveLength(before.length + 450)
  })

  it('is refused to identities that do not administer', async () => {
    const { token } = await world.signIn({ name: 'ordinary' })

    const { status } = await world.send({ method: 'GET', path: `${MANAGEMENT}/controller/network`, token })

    expect(status).toBe(401)
  })
})
