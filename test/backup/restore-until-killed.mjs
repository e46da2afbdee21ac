// A process that restores a backup, and kills itself at one of the moments at which a file is put in place.
import fs from 'node:fs'
import { register, syncBuiltinESMExports } from 'node:module'

const [file, directory, moment] = process.argv.slice(2)
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
register('../world/typescript-loader.mjs', import.meta.url)
const { restoreBackup } = await import('../../src/backup/restore-backup.ts')

await restoreBackup({ file, directory, now: Date.UTC(2026, 10, 22) })
process.stdout.write(`${count}\n`)
