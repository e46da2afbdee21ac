// What decides how traffic flows, as the controller holds it.
import type { HostedTerminators } from './hosted-terminators.ts'
import type { TerminatorDirectory } from './terminator-directory.ts'
import type { TerminatorValidation } from './terminator-validation.ts'

export interface Fabric {
  readonly terminators: TerminatorDirectory
  readonly hosted: HostedTerminators
  readonly validation: TerminatorValidation
}
