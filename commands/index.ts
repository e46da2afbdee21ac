// Every command by its id: some are written by hand, all others are generated from the API.
import { access } from './access.ts'
import { AdminRecover } from './admin-recover.ts'
import { loadApiDescription } from './api/description.ts'
import { makeOperationCommands } from './api/operation-commands.ts'
import { apiRequest } from './api-request.ts'
import { caVerify } from './ca-verify.ts'
import { Completion } from './completion/completion.ts'
import type { CommandClass } from './connected.ts'
import { DbCheck, DbMigrate, DbRotateKeys } from './db.ts'
import { DbBackup, DbRestore, DbVerify } from './db-backup.ts'
import { doctor } from './doctor.ts'
import { Enroll } from './enroll.ts'
import { externalJwtSignerTest } from './external-jwt-signer-test.ts'
import { Init } from './init.ts'
import { logLevel } from './log-level.ts'
import { Login } from './login.ts'
import { Logout } from './logout.ts'
import { mfaEnroll } from './mfa/enroll.ts'
import { mfaRecoveryCodes } from './mfa/recovery-codes.ts'
import { mfaRemove } from './mfa/remove.ts'
import { mfaStatus } from './mfa/status.ts'
import { applyNetwork } from './network-file/apply.ts'
import { exportNetwork } from './network-file/export.ts'
import { planNetwork } from './network-file/plan.ts'
import { passwd } from './passwd.ts'
import { pkiRotate } from './pki-rotate.ts'
import { policyAdvise } from './policy-advise.ts'
import { policyImpact } from './policy-impact.ts'
import { policyTest } from './policy-test.ts'
import { identityPosture, postureCheckTest } from './posture.ts'
import { ProfileDelete, ProfileList, ProfileUse } from './profile.ts'
import { Quickstart } from './quickstart.ts'
import { Renew } from './renew.ts'
import { Serve } from './serve.ts'
import { SystemdUnit } from './systemd-unit.ts'
import { Version } from './version.ts'
import { whoami } from './whoami.ts'

const HAND_WRITTEN = {
  serve: Serve,
  quickstart: Quickstart,
  init: Init,
  enroll: Enroll,
  login: Login,
  logout: Logout,
  whoami,
  access,
  version: Version,
  passwd,
  renew: Renew,
  'mfa:enroll': mfaEnroll,
  'mfa:status': mfaStatus,
  'mfa:remove': mfaRemove,
  'mfa:recovery-codes': mfaRecoveryCodes,
  'profile:list': ProfileList,
  'profile:use': ProfileUse,
  'profile:delete': ProfileDelete,
  'log:level': logLevel,
  'pki:rotate': pkiRotate,
  'ca:verify': caVerify,
  'external-jwt-signer:test': externalJwtSignerTest,
  'policy:advise': policyAdvise,
  'policy:impact': policyImpact,
  'policy:test': policyTest,
  'identity:posture': identityPosture,
  'posture-check:test': postureCheckTest,
  doctor,
  export: exportNetwork,
  plan: planNetwork,
  apply: applyNetwork,
  api: apiRequest,
  completion: Completion,
  'admin:recover': AdminRecover,
  'systemd-unit': SystemdUnit,
  'db:backup': DbBackup,
  'db:verify': DbVerify,
  'db:restore': DbRestore,
  'db:check': DbCheck,
  'db:migrate': DbMigrate,
  'db:rotate-keys': DbRotateKeys,
}

// Property descriptors are copied, because the commands of operations are getters that create them at the first use.
export const COMMANDS: Readonly<Record<string, CommandClass>> = Object.defineProperties(
  makeOperationCommands(loadApiDescription()),
  Object.getOwnPropertyDescriptors(HAND_WRITTEN as unknown as Record<string, CommandClass>),
)
