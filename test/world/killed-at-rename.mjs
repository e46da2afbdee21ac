// Kills this process at one of the moments at which a file is put in place: before that rename, or after it.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/** Counts the moments from now on, and ends the process at the given one; a number that none has lets it finish. @returns the count */
export function killAtRename(moment) {
  let count = 0
  const { renameSync } = fs
  const passMoment = () => {
    if (++count === Number(moment)) process.kill(process.pid, 'SIGKILL')
  }
  fs.renameSync = (...paths) => {
    passMoment()
    renameSync(...paths)
    passMoment()
  }
  syncBuiltinESMExports()
  return () => count
}
