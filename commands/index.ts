// Every command by its id: some are written by hand, all others are generated from the API.
import { access } from './account/access.ts'
import { Enroll } from './account/enroll.ts'
import { Login } from './account/login.ts'
import { Logout } from './account/logout.ts'
import { mfaEnroll } from './account/mfa/enroll.ts'
import { mfaRecoveryCodes } from './account/mfa/recovery-codes.ts'
import { mfaRemove } from './account/mfa/remove.ts'
import { mfaStatus } from './account/mfa/status.ts'
import { passwd } from './account/passwd.ts'
import { ProfileDelete, ProfileList, ProfileUse } from './account/profile.ts'
import { Renew } from './account/renew.ts'
import { whoami } from './account/whoami.ts'
import { caVerify } from './administration/ca-verify.ts'
import { doctor } from './administration/doctor.ts'
import { eventsWatch } from './administration/events-watch.ts'
import { externalJwtSignerTest } from './administration/external-jwt-signer-test.ts'
import { logLevel } from './administration/log-level.ts'
import { nodeDrain, nodeResume } from './administration/node-drain.ts'
import { pkiRotate } from './administration/pki-rotate.ts'
import { policyAdvise } from './administration/policy-advise.ts'
import { policyGraph } from './administration/policy-graph.ts'
import { policyImpact } from './administration/policy-impact.ts'
import { policyTest } from './administration/policy-test.ts'
import { identityPosture, postureCheckTest } from './administration/posture.ts'
import { routerMap } from './administration/router-map.ts'
import { top } from './administration/top.ts'
import { VersionCommand } from './administration/version.ts'
import { webhookTest } from './administration/webhook-test.ts'
import { apiRequest } from './api/api-request.ts'
import { makeOperationCommands } from './api/operation-commands.ts'
import { Completion } from './completion/completion.ts'
import { loadApiDescription } from './foundation/description.ts'
import type { CommandClass } from './framework/connected.ts'
import { AdminRecover } from './local/admin-recover.ts'
import { Adopt } from './local/adopt.ts'
import { ClusterInit, ClusterJoin, ClusterLeave, ClusterRekey, ClusterSettings } from './local/cluster.ts'
import { DbCheck, DbMigrate, DbRotateKeys } from './local/db.ts'
import { DbBackup, DbRestore, DbVerify } from './local/db-backup.ts'
import { Init } from './local/init.ts'
import { Quickstart } from './local/quickstart.ts'
import { Serve } from './local/serve.ts'
import { SystemdUnit } from './local/systemd-unit.ts'
import { applyCommand } from './network-file/apply.ts'
import { exportCommand } from './network-file/export.ts'
import { planCommand } from './network-file/plan.ts'

const HAND_WRITTEN = {
  serve: Serve,
  quickstart: Quickstart,
  init: Init,
  adopt: Adopt,
  enroll: Enroll,
  login: Login,
  logout: Logout,
  whoami,
  access,
  version: VersionCommand,
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
  'node:drain': nodeDrain,
  'node:resume': nodeResume,
  'pki:rotate': pkiRotate,
  'ca:verify': caVerify,
  'events:watch': eventsWatch,
  'external-jwt-signer:test': externalJwtSignerTest,
  top,
  'webhook:test': webhookTest,
  'policy:advise': policyAdvise,
  'policy:graph': policyGraph,
  'policy:impact': policyImpact,
  'policy:test': policyTest,
  'router:map': routerMap,
  'identity:posture': identityPosture,
  'posture-check:test': postureCheckTest,
  doctor,
  export: exportCommand,
  plan: planCommand,
  apply: applyCommand,
  api: apiRequest,
  completion: Completion,
  'admin:recover': AdminRecover,
  'systemd-unit': SystemdUnit,
  'cluster:init': ClusterInit,
  'cluster:join': ClusterJoin,
  'cluster:leave': ClusterLeave,
  'cluster:rekey': ClusterRekey,
  'cluster:settings': ClusterSettings,
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
