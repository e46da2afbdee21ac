// What decides how traffic flows, as the controller holds it.
import type { TerminatorDirectory } from './terminator-directory.ts'

export interface Fabric {
  readonly terminators: TerminatorDirectory
}
