// The keys and certificates that the controllers of a cluster share: a change at one is a change at all.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { TestCluster } from '../world/cluster.ts'
import type { TestController } from '../world/controller.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const world = useClusterPerTest(TestCluster)

const readPki = ({ directory }: TestController, name: string) => readFileSync(join(getDataPaths(directory).pki, name))

/** The fingerprint of the certificate that a listener presents. */
function fetchFingerprint(address: string): Promise<string> {
  const [host, port] = address.split(':')
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

describe('the certificates of a cluster', () => {
  it('are presented by every controller once one has renewed them', async () => {
    const [first, second] = [await world.cluster.open('first'), await world.cluster.open('second')]
    const { addresses } = await second.listen()
    await first.controller.certificates.own.renewServer(first.system)
    await second.controller.store.catchUp()
    const renewed = first.controller.authority.server.certificate
    expect(second.controller.authority.server.certificate.fingerprint256).toBe(renewed.fingerprint256)
    expect(await fetchFingerprint(addresses[0] as string)).toBe(renewed.fingerprint256)
    for (const name of ['server.crt', 'server.key']) expect(readPki(second, name)).toEqual(readPki(first, name))
  })

  it('are replaced with their root on every controller, which issues by the new one', async () => {
    const [first, second] = [await world.cluster.open('first'), await world.cluster.open('second')]
    const former = first.controller.authority.rootFingerprint
    await second.controller.certificates.own.rotateRoot(second.system)
    await first.controller.store.catchUp()
    const { authority } = first.controller
    expect(authority.rootFingerprint).not.toBe(former)
    expect(authority.intermediate.certificate.checkIssued(authority.root)).toBe(true)
    for (const name of ['root.key', 'root.crt', 'intermediate.key', 'intermediate.crt', 'former.crt'])
      expect(readPki(first, name)).toEqual(readPki(second, name))
  })

  it('reach a controller that was stopped meanwhile, before it reads its files', async () => {
    const [first, second] = [await world.cluster.open('first'), await world.cluster.open('second')]
    await world.cluster.stop(second)
    await first.controller.certificates.own.rotateIntermediate(first.system)
    // As a kill between two files leaves them.
    writeFileSync(join(getDataPaths(second.directory).pki, 'intermediate.crt'), 'damaged')
    const again = await world.cluster.open('second', { directory: second.directory })
    expect(again.controller.authority.intermediate.certificate.raw).toEqual(
      first.controller.authority.intermediate.certificate.raw,
    )
  })

  it('name every controller, and keep the names of those that joined before', async () => {
    const first = await world.cluster.open('first', { settings: { advertise: ['one.example:1280'] } })
    const second = await world.cluster.open('second', { settings: { advertise: ['two.example:1280'] } })
    await first.controller.certificates.own.renewDue(first.system)
    await second.controller.store.catchUp()
    await second.controller.certificates.own.renewDue(second.system)
    await first.controller.store.catchUp()
    const { certificate } = first.controller.authority.server
    expect([certificate.checkHost('one.example'), certificate.checkHost('two.example')]).toEqual([
      'one.example',
      'two.example',
    ])
    const { position } = await first.system.db
      .selectFrom('commit_position')
      .select('position')
      .executeTakeFirstOrThrow()
    await first.controller.certificates.own.renewDue(first.system)
    const later = await first.system.db.selectFrom('commit_position').select('position').executeTakeFirstOrThrow()
    expect(later.position - position, 'nothing was due').toBeLessThanOrEqual(2)
  })

  it('are not readable in the rows', async () => {
    const first = await world.cluster.open('first')
    await first.controller.certificates.own.rotateIntermediate(first.system)
    const rows = await first.system.db.selectFrom('shared_files').selectAll().execute()
    const key = readPki(first, 'intermediate.key').toString('utf8')
    expect(rows.map(({ name }) => name).sort()).toContain('pki/intermediate.key')
    for (const { sealedContent } of rows)
      expect(Buffer.from(sealedContent.split('.')[1] as string, 'base64url').includes(key.slice(40, 80))).toBe(false)
  })
})

describe('the records of the controllers', () => {
  it('are told apart by the names of the nodes, although all have one certificate', async () => {
    const first = await world.cluster.open('first', { settings: { advertise: ['one.example:1280'] } })
    const second = await world.cluster.open('second', { settings: { advertise: ['two.example:1280'] } })
    await first.controller.membership.announce(first.system, { 'edge-client': '/edge/client/v1' })
    await second.controller.membership.announce(second.system, { 'edge-client': '/edge/client/v1' })
    await first.controller.membership.announce(first.system, { 'edge-client': '/edge/client/v1' })
    const records = await first.system.db.selectFrom('controllers').select(['name', 'id', 'ctrlAddress']).execute()
    expect(records.map(({ name }) => name).sort()).toEqual(['first', 'second'])
    expect(first.controller.membership.ownId).toBe(records.find(({ name }) => name === 'first')?.id)
    expect(second.controller.membership.ownId).toBe(records.find(({ name }) => name === 'second')?.id)
  })
})
