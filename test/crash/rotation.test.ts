// A rotation that is killed at any moment leaves files that a controller starts with, and that its clients trust.
import { spawnSync } from 'node:child_process'
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

const HOST = 'controller.example'
const NOW = Date.UTC(2026, 5, 1)
const folder = mkdtempSync(join(tmpdir(), 'killed-rotation-'))
const template = join(folder, 'template')
const rotating = join(folder, 'rotating')
const script = join(import.meta.dirname, 'rotate-until-killed.mjs')

beforeAll(() => {
  Authority.make(template, [HOST], NOW)
  cpSync(template, rotating, { recursive: true })
  Authority.load(rotating).rotateRoot([HOST], NOW)
})
afterAll(() => rmSync(folder, { recursive: true }))

function rotate(directory: string, rotation: string, moment: number, now = NOW) {
  return spawnSync(process.execPath, [script, directory, rotation, HOST, String(now), String(moment)], {
    encoding: 'utf8',
  })
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
  it(`has ${moments} moments`, () => {
    const directory = join(folder, `${rotation}-whole`)
    cpSync(rotation === 'finish' ? rotating : template, directory, { recursive: true })

    expect(rotate(directory, rotation, 0).stdout).toBe(`${moments}\n`)
  })

  it('can be killed at each of them', { timeout: 120_000 }, async () => {
    const { csr } = await clientKey('device')
    for (let moment = 1; moment <= moments; moment++) {
      const directory = join(folder, `${rotation}-${moment}`)
      cpSync(rotation === 'finish' ? rotating : template, directory, { recursive: true })
      // The bundle of clients that enrolled before; those that know only the previous root are given up by the end.
      const expectedRoots = rotation === 'finish' ? [Authority.load(directory).root] : Authority.load(directory).bundle

      expect(rotate(directory, rotation, moment).signal, `moment ${moment}`).toBe('SIGKILL')

      // As the files were left, as a start completes them, and as they are read again.
      const left = Authority.load(directory)
      expect(isAccepted(left.serverChainPem, expectedRoots), `moment ${moment}, left`).toBe(true)
      left.renewDue([HOST], NOW)
      expect(readdirSync(directory).filter((name) => name.endsWith('.new'))).toEqual([])
      for (const each of [left, Authority.load(directory)]) {
        const chain = each.clientChainPem(each.issueClient(readSigningRequest(csr), NOW))
        expect(isAccepted(each.serverChainPem, expectedRoots), `moment ${moment}, server`).toBe(true)
        expect(isAccepted(chain, expectedRoots), `moment ${moment}, client`).toBe(true)
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
  // After the new root is in place, and before anything that it issues is.
  expect(rotate(pki, 'root', 6, Date.now()).signal).toBe('SIGKILL')

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
