// A process that restores a backup, and kills itself at one of the moments at which a file is put in place.
import { register } from 'node:module'
import { killAtRename } from '../world/killed-at-rename.mjs'

const [file, directory, moment] = process.argv.slice(2)
const countMoments = killAtRename(moment)
register('../world/typescript-loader.mjs', import.meta.url)
const { restoreBackup } = await import('../../src/maintenance/backup/restore-backup.ts')

await restoreBackup({ file, directory, now: Date.UTC(2026, 10, 22) })
process.stdout.write(`${countMoments()}\n`)
