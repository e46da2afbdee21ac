// Encodes posture checks as routers evaluate them: by the values that they compare as text.
import type { MessageInitShape } from '@bufbuild/protobuf'
import { writeWithoutWildcards } from '../../src/definitions/schema/version-ranges.ts'
import type { ModelPostureCheck } from '../../src/network/router-model/model-events.ts'
import { compilePostureCheck, type RequiredProcess } from '../../src/policy/posture/posture-checks.ts'
import type { DataState_PostureCheckSchema } from './messages/edge_pb.ts'

type EncodedCheck = MessageInitShape<typeof DataState_PostureCheckSchema>

// A router passes no version of an operating system for which it has no range.
const ANY_VERSION = ['>=0.0.0']

export function encodePostureCheck(check: ModelPostureCheck): EncodedCheck {
  const { id, name, typeId } = check
  return { id, name, typeId, subtype: encodeDemand(check) }
}

function encodeDemand(record: ModelPostureCheck): NonNullable<EncodedCheck['subtype']> {
  const check = compilePostureCheck(record)
  switch (check.typeId) {
    case 'OS': {
      const osList = check.rules.map(({ type }) => {
        const ranges = check.rangesByType.get(type.toLowerCase()) ?? []
        return { OsType: type, OsVersions: ranges.length > 0 ? ranges.flatMap(writeWithoutWildcards) : ANY_VERSION }
      })
      return { case: 'osList', value: { osList } }
    }
    case 'MAC':
      return { case: 'mac', value: { macAddresses: [...check.macAddresses] } }
    case 'PROCESS':
      return { case: 'process', value: encodeProcess(check.process) }
    case 'PROCESS_MULTI': {
      const { semantic, processes } = check
      return { case: 'processMulti', value: { semantic, processes: processes.map(encodeProcess) } }
    }
    case 'MFA': {
      const { timeoutMs, promptOnWake, promptOnUnlock, ignoreLegacyEndpoints } = check
      const value = {
        TimeoutSeconds: Number.isFinite(timeoutMs) ? BigInt(timeoutMs / 1_000) : -1n,
        PromptOnWake: promptOnWake,
        PromptOnUnlock: promptOnUnlock,
        IgnoreLegacyEndpoints: ignoreLegacyEndpoints,
      }
      return { case: 'mfa', value }
    }
    case 'DOMAIN': {
      // As they were written, and as they are compared here.
      const { domains = [] } = record.details as { domains?: readonly string[] }
      return { case: 'domains', value: { domains: [...new Set([...domains, ...check.domains])] } }
    }
  }
}

function encodeProcess({ osType, path, hashes, signerFingerprints }: RequiredProcess) {
  return { OsType: osType, Path: path, Hashes: [...hashes], Fingerprints: [...signerFingerprints] }
}
