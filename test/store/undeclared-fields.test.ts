// Values that no field of a resource takes are refused: code that misspells a field learns it, instead of losing the value.
import { describe, expect, it } from 'vitest'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { postureChecks } from '../../src/definitions/resources/posture-checks.ts'
import { services } from '../../src/definitions/resources/services.ts'
import { find, get, newEntity } from '../../src/storage/entities/entities.ts'
import { newName } from '../world/names.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()

const misspelled: Readonly<Record<string, unknown>> = { encryptionIsRequired: true }
const refusal = 'services have no field "encryptionIsRequired"'

/** A service as code sees that works on any resource, so that no type tells which fields there are. */
const anyService: AnyResource = services

async function makeService(): Promise<string> {
  return (await world.controller.entities.create(world.system, services, { name: newName('service') })).id
}

describe('a value that no field takes', () => {
  it('is refused in a new record', () => {
    const make = () => newEntity(world.system, anyService, { name: newName('service'), ...misspelled })

    expect(make).toThrow(refusal)
  })

  it('is refused by the type of the resource, if that is known', () => {
    // @ts-expect-error: services have no such field
    expect(() => newEntity(world.system, services, { name: 'x', encryptionIsRequired: true })).toThrow(refusal)
  })

  it('is refused when a record is created, before anything is written', async () => {
    const name = newName('service')

    await expect(world.controller.entities.create(world.system, anyService, { name, ...misspelled })).rejects.toThrow(
      refusal,
    )
    expect(
      await world.controller.store.db.selectFrom('services').select('id').where('name', '=', name).execute(),
    ).toEqual([])
  })

  it('is refused when a complete record is stored', async () => {
    const service = newEntity(world.system, services, { name: newName('service') })
    const storing = world.system.write((tx) =>
      world.controller.entities.insert(tx, anyService, { ...service, ...misspelled }),
    )

    await expect(storing).rejects.toThrow(refusal)
    expect(await find(world.system, services, service.id)).toBeUndefined()
  })

  it('is refused in an update, and the record stays as it was', async () => {
    const id = await makeService()
    const before = await get(world.system, services, id)
    const updating = world.system.write((tx) =>
      world.controller.entities.update(tx, anyService, before, { name: 'another', ...misspelled }),
    )

    await expect(updating).rejects.toThrow(refusal)
    expect(await get(world.system, services, id)).toEqual(before)
  })

  it('is refused in an update by the type of the resource, if that is known', async () => {
    const before = await get(world.system, services, await makeService())
    const updating = world.system.write(async (tx) => {
      // @ts-expect-error: services have no such field
      await world.controller.entities.update(tx, services, before, { encryptionIsRequired: true })
    })

    await expect(updating).rejects.toThrow(refusal)
  })

  it.each([
    ['replacement', 'replace'],
    ['patch', 'patch'],
  ] as const)('is refused in a %s, and the record stays as it was', async (_what, change) => {
    const id = await makeService()
    const before = await get(world.system, services, id)

    await expect(
      world.controller.entities[change](world.system, services, id, { name: 'another', ...misspelled }),
    ).rejects.toThrow(refusal)
    expect(await get(world.system, services, id)).toEqual(before)
  })

  it('is refused inside a structured field', () => {
    const make = () =>
      newEntity(world.system, postureChecks as AnyResource, {
        name: newName('check'),
        typeId: 'MFA',
        details: { timeoutMinutes: 5 },
      })

    expect(make).toThrow('posture checks have no field "details.timeoutMinutes"')
  })
})

describe('inputs of a definition', () => {
  it('are no part of the record, and are accepted where it is created', async () => {
    const values = {
      name: newName('identity'),
      typeId: 'User',
      isAdmin: false,
      enrollment: { ott: true, ottca: '', updb: '', expiresAt: null },
    }
    const { id } = await world.controller.entities.create(world.system, identities, values)

    expect(await find(world.system, identities, id)).not.toHaveProperty('enrollment')
    expect(
      await world.controller.store.db.selectFrom('enrollments').select('method').where('identityId', '=', id).execute(),
    ).toEqual([{ method: 'ott' }])
  })
})
