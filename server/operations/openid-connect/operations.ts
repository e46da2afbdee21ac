// Every operation of the provider of OpenID Connect.
import type { AnyOperation } from '../../api/operation.ts'
import { authorizeOperations } from './authorize.ts'
import { discoveryOperations } from './discovery.ts'
import { externalLoginOperations } from './external-login.ts'
import { loginOperations } from './login.ts'
import { pageOperations, withPages } from './pages.ts'
import { tokenOperations } from './token.ts'
import { tokenStateOperations } from './token-state.ts'
import { totpEnrollmentOperations } from './totp-enrollment.ts'

export const openIdOperations: readonly AnyOperation[] = [
  ...discoveryOperations,
  ...authorizeOperations.map(withPages),
  ...loginOperations.map(withPages),
  ...pageOperations,
  ...totpEnrollmentOperations.map(withPages),
  ...externalLoginOperations,
  ...tokenOperations,
  ...tokenStateOperations,
]
