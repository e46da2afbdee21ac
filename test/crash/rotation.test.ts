// A rotation that is killed at any moment leaves files that a controller starts with, and that its clients trust.
import { X509Certificate } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Authority } from '../../src/pki/authority.ts'
import { buildChain, isSelfSigned } from '../../src/pki/chains.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { readSigningRequest } from '../../src/pki/requests.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { copyOfTemplate, testController } from '../world/controller.ts'
import { copyAtEachRename } from '../world/killed-copies.ts'

const HOST = 'controller.example'
const NOW = Date.UTC(2026, 5, 1)
const folder = mkdtempSync(join(tmpdir(), 'killed-rotation-'))
const template = join(folder, 'template')
const rotating = join(folder, 'rotating')

beforeAll(() => {
  Authority.make(template, [HOST], NOW)
  cpSync(template, rotating, { recursive: true })
  Authority.load(rotating).rotateRoot([HOST], NOW)
})
afterAll(() => rmSync(folder, { recursive: true }))

type Rotation = 'renew' | 'intermediate' | 'root' | 'finish'

function rotate(authority: Authority, rotation: Rotation, now = NOW): void {
  if (rotation === 'finish') authority.finishRootRotation(now)
  else if (rotation === 'renew') authority.renewServer([HOST], now)
  else if (rotation === 'intermediate') authority.rotateIntermediate([HOST], now)
  else authority.rotateRoot([HOST], now)
}

function parse(pem: string): X509Certificate[] {
  return parsePemBlocks(pem).map(({ bytes }) => new X509Certificate(bytes))
}

/** Whether a client that trusts only these authorities accepts a chain. */
function isAccepted(chainPem: string, trusted: readonly X509Certificate[]): boolean {
  const [leaf, ...others] = parse(chainPem)
  return buildChain(leaf as X509Certificate, others, trusted.filter(isSelfSigned), { now: NOW }) !== undefined
}

// Each file is put in place by one rename, which has a moment before it and one after it.
const rotations = [
  ['renew', 2],
  ['intermediate', 10],
  ['root', 16],
  ['finish', 4],
] as const

describe.each(rotations)('a rotation of %s', (rotation, moments) => {
  let expectedRoots: readonly X509Certificate[]
  let killed: readonly string[]

  beforeAll(async () => {
    const directory = join(folder, rotation)
    cpSync(rotation === 'finish' ? rotating : template, directory, { recursive: true })
    const authority = Authority.load(directory)
    // The bundle of clients that enrolled before; those that know only the previous root are given up by the end.
    expectedRoots = rotation === 'finish' ? [authority.root] : authority.bundle
    killed = await copyAtEachRename(directory, `${directory}-killed`, () => rotate(authority, rotation))
  })

  it(`has ${moments} moments`, () => {
    expect(killed).toHaveLength(moments)
  })

  it('can be killed at each of them', async () => {
    const { csr } = await clientKey('device')
    for (const [at, directory] of killed.entries()) {
      // As the files were left, as a start completes them, and as they are read again.
      const left = Authority.load(directory)
      expect(isAccepted(left.serverChainPem, expectedRoots), `moment ${at + 1}, left`).toBe(true)
      left.renewDue([HOST], NOW)
      expect(readdirSync(directory).filter((name) => name.endsWith('.new'))).toEqual([])
      for (const each of [left, Authority.load(directory)]) {
        const chain = each.clientChainPem(each.issueClient(readSigningRequest(csr), NOW))
        expect(isAccepted(each.serverChainPem, expectedRoots), `moment ${at + 1}, server`).toBe(true)
        expect(isAccepted(chain, expectedRoots), `moment ${at + 1}, client`).toBe(true)
        expect(each.server.certificate.checkIssued(each.intermediate.certificate)).toBe(true)
        expect(each.intermediate.certificate.checkIssued(each.root)).toBe(true)
      }
      // An interrupted step can be repeated.
      if (rotation === 'intermediate' || rotation === 'renew') left.rotateIntermediate([HOST], NOW)
      else if (left.previousRoot) left.finishRootRotation(NOW)
    }
  })
})

it('a controller starts on what a killed replacement of its root left, for clients of the previous root', async () => {
  const directory = copyOfTemplate()
  const { pki } = getDataPaths(directory)
  const rootPem = readFileSync(join(pki, 'root.crt'), 'utf8')
  const killed = await copyAtEachRename(pki, join(folder, 'pki-killed'), () =>
    rotate(Authority.load(pki), 'root', Date.now()),
  )
  // After the new root is in place, and before anything that it issues is.
  rmSync(pki, { recursive: true })
  cpSync(killed[5] ?? '', pki, { recursive: true })

  const world = await testController({ directory })
  try {
    await world.controller.certificates.upkeep.runIfDue(world.system)
    const { url } = await world.listen()

    expect((await callOverTls(url, rootPem, { method: 'GET', path: '/version' })).status).toBe(200)
    expect(world.controller.authority.previousRoot).toBeDefined()
  } finally {
    await world.close()
  }
})
