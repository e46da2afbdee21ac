// Routers of release 2 judge machines as the controller does: random posture checks and reports, by the rules of such routers.
import type { MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import type { DataState_PostureCheckSchema } from '../../server/control-channel/messages/edge_pb.ts'
import { encodePostureCheck } from '../../server/control-channel/posture-encoding.ts'
import { isInVersionRange, parseVersion, parseVersionRange } from '../../src/definitions/schema/version-ranges.ts'
import { evaluateCheck } from '../../src/policy/posture/evaluate-check.ts'
import type { MachineState } from '../../src/policy/posture/machine-state.ts'
import { compilePostureCheck } from '../../src/policy/posture/posture-checks.ts'
import { type Random, random } from '../world/random.ts'

const CHECKS = 3_000
const SYSTEMS = ['Windows', 'Linux', 'macOS']
const DOMAINS = ['corp.example', 'Corp.Example', 'other.example']
const ADDRESSES = ['001a2b3c4d5e', '00aa00aa00aa', 'ffffffffffff']
const PATHS = ['/bin/a', '/bin/b', '/bin/c']
const HASHES = ['aa', 'bb']
const NOTHING_ELSE = { at: 0, postureCheckId: 'check' }

interface Report {
  readonly os: { readonly type: string; readonly version: string }
  readonly domain: string
  readonly addresses: readonly string[]
  readonly processes: readonly {
    readonly path: string
    readonly isRunning: boolean
    readonly hash: string
    readonly signers: readonly string[]
  }[]
}

function randomRange(choose: Random): string {
  const number = () => choose.below(3)
  const version = () =>
    choose.pick([
      ...[`${number()}.${number()}.${number()}`, `${number()}.${number()}.1-beta`, `${number()}.${number()}.x`],
      ...[`${number()}.X`, `${number()}.*`, `${number()}.x.x`, '*'],
    ])
  const condition = () => choose.pick(['', '=', '!=', '<', '<=', '>', '>=', '>= ']) + version()
  const conditions = () => Array.from({ length: 1 + choose.below(3) }, condition).join(' ')
  return Array.from({ length: 1 + choose.below(2) }, conditions).join(choose.pick(['||', ' || ']))
}

function randomCheck(choose: Random): { typeId: string; details: object } {
  const process = () => ({
    ...{ osType: choose.pick(SYSTEMS), path: choose.pick(PATHS) },
    ...{ hashes: choose.some(HASHES), signerFingerprints: choose.some(HASHES) },
  })
  const versions = () => Array.from({ length: choose.below(3) }, () => randomRange(choose))
  const operatingSystems = choose.some(SYSTEMS).map((type) => ({ type, versions: versions() }))
  const processes = Array.from({ length: 1 + choose.below(2) }, process)
  return choose.pick([
    { typeId: 'OS', details: { operatingSystems } },
    { typeId: 'DOMAIN', details: { domains: choose.some(DOMAINS) } },
    { typeId: 'MAC', details: { macAddresses: choose.some(ADDRESSES) } },
    { typeId: 'PROCESS', details: { process: { ...process(), signerFingerprint: choose.pick([null, 'aa']) } } },
    { typeId: 'PROCESS_MULTI', details: { semantic: choose.pick(['AllOf', 'AnyOf']), processes } },
  ])
}

/** Of the system that the processes of a check are for: the controller does not compare it. */
function randomReport(choose: Random, type: string): Report {
  const version = `${choose.below(4)}.${choose.below(4)}.${choose.pick(['0', '1', '1-beta'])}`
  const toProcess = (path: string) => ({
    ...{ path, isRunning: choose.oneIn(2), hash: choose.pick(HASHES), signers: choose.some(HASHES) },
  })
  return {
    ...{ os: { type, version }, domain: choose.pick(DOMAINS), addresses: choose.some(ADDRESSES) },
    processes: PATHS.map(toProcess),
  }
}

function toMachine({ os, domain, addresses, processes }: Report, path: string | undefined): MachineState {
  const all = processes.map(({ signers, ...process }) => ({
    ...{ ...NOTHING_ELSE, ...process, signerFingerprints: signers },
  }))
  const named = all.find((process) => process.path === path)
  return {
    ...{ os: { ...NOTHING_ELSE, ...os, build: null }, domain: { ...NOTHING_ELSE, domain } },
    mac: { ...NOTHING_ELSE, macAddresses: addresses },
    processesByCheck: new Map(named ? [['check', named]] : []),
    processesByPath: new Map(all.map((process) => [process.path, process])),
  }
}

type Subtype = NonNullable<MessageInitShape<typeof DataState_PostureCheckSchema>['subtype']>
type WantedProcess = Extract<Subtype, { case: 'process' }>['value']

/** A router reads a range of exact versions apart by one space, and fails on anything else. */
function isInRangeOfRouter(version: string, text: string): boolean {
  for (const condition of text.split(' ')) expect(condition).toMatch(/^(=|!=|<=?|>=?)\d+\.\d+\.\d+(-[0-9a-z.]+)?$/)
  return isInVersionRange(parseVersion(version) as never, parseVersionRange(text) as never)
}

function isProcessAccepted(wanted: WantedProcess, { os, processes }: Report): boolean {
  const { OsType = '', Path, Hashes = [], Fingerprints = [] } = wanted
  const process = processes.find(({ path }) => path === Path)
  return (
    process?.isRunning === true &&
    OsType.toLowerCase() === os.type.toLowerCase() &&
    (Hashes.length === 0 || Hashes.includes(process.hash)) &&
    (Fingerprints.length === 0 || process.signers.some((signer) => Fingerprints.includes(signer)))
  )
}

function isPassingAtRouter(subtype: Subtype, report: Report): boolean {
  switch (subtype.case) {
    case 'osList': {
      const rule = subtype.value.osList?.find(({ OsType }) => OsType?.toLowerCase() === report.os.type.toLowerCase())
      return rule?.OsVersions?.some((range) => isInRangeOfRouter(report.os.version, range)) ?? false
    }
    case 'domains':
      return subtype.value.domains?.includes(report.domain) ?? false
    case 'mac':
      return subtype.value.macAddresses?.some((address) => report.addresses.includes(address)) ?? false
    case 'process':
      return isProcessAccepted(subtype.value, report)
    case 'processMulti': {
      const { semantic, processes = [] } = subtype.value
      return processes[semantic === 'AllOf' ? 'every' : 'some']((process) => isProcessAccepted(process, report))
    }
    default:
      throw new Error('there is no such check')
  }
}

describe.each([1, 2, 3])('posture checks and reports of machines (seed %i)', (seed) => {
  it('pass at routers if and only if they pass at the controller', () => {
    const choose = random(seed)
    const counts = { passing: 0, failing: 0 }
    for (let nth = 0; nth < CHECKS; nth += 1) {
      const type = choose.pick(SYSTEMS)
      const { typeId, details } = randomCheck(choose)
      const ofType = JSON.parse(JSON.stringify(details), (key, value) => (key === 'osType' ? type : value))
      const record = { id: 'check', typeId, details: ofType }
      const report = randomReport(choose, type)
      const machine = toMachine(report, ofType.process?.path)
      const facts = { machine, apiSessions: [], strictestMfaTimeoutMs: Number.POSITIVE_INFINITY }
      const { evidence } = evaluateCheck(compilePostureCheck(record), facts, 0)
      const { subtype } = encodePostureCheck({ kind: 'posture-check', name: 'check', ...record })
      // A domain that is written in another case than in the check passes at the controller alone.
      if (typeId === 'DOMAIN' && !ofType.domains.includes(report.domain)) continue
      const isPassing = isPassingAtRouter(subtype as Subtype, report)
      expect(isPassing, JSON.stringify({ record, report })).toBe(evidence === 'passing')
      counts[isPassing ? 'passing' : 'failing'] += 1
    }
    expect(Math.min(counts.passing, counts.failing)).toBeGreaterThan(CHECKS / 10)
  })
})
