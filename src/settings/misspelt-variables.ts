// Finds environment variables that were meant as settings, and are misspelt.
import { computeEditDistance } from '../foundation/edit-distance.ts'

const PREFIX = 'CONTROLLER_'
// More mistakes in one name are improbable, and the name may belong to another program.
const MAX_DISTANCE = 2

/** The variables that the command line reads. The others are settings. */
export const COMMAND_VARIABLES: readonly string[] = [
  'CONTROLLER_PROFILE',
  'CONTROLLER_DATA_DIR',
  'CONTROLLER_URL',
  'CONTROLLER_TOKEN',
  'CONTROLLER_IDENTITY_FILE',
  'CONTROLLER_ROOT_FILE',
]

/** A variable that is not read, and the one that was probably meant. */
export interface MisspeltVariable {
  readonly name: string
  readonly meant: string
}

/** @param known the names of all variables that are read */
export function findMisspeltVariables(env: NodeJS.ProcessEnv, known: readonly string[]): MisspeltVariable[] {
  const names = Object.keys(env).filter((name) => name.startsWith(PREFIX) && !known.includes(name))
  return names.flatMap((name) => {
    const [nearest] = known
      .map((meant) => ({ meant, distance: computeEditDistance(name, meant) }))
      .filter(({ distance }) => distance <= MAX_DISTANCE)
      .sort((a, b) => a.distance - b.distance)
    return nearest ? [{ name, meant: nearest.meant }] : []
  })
}
