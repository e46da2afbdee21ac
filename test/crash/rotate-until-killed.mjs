// A process that rotates an authority, and kills itself at one of the moments at which a file is put in place.
import fs from 'node:fs'
import { register, syncBuiltinESMExports } from 'node:module'

const [directory, rotation, host, now, moment] = process.argv.slice(2)
let count = 0
const { renameSync } = fs
const passMoment = () => {
  if (++count === Number(moment)) process.kill(process.pid, 'SIGKILL')
}
// Before a file is replaced its new content lies beside it; after that, no more than the rename is done.
fs.renameSync = (...paths) => {
  passMoment()
  renameSync(...paths)
  passMoment()
}
syncBuiltinESMExports()
register('../world/typescript-loader.mjs', import.meta.url)
const { Authority } = await import('../../src/pki/authority.ts')

const authority = Authority.load(directory)
if (rotation === 'finish') authority.finishRootRotation(Number(now))
else if (rotation === 'renew') authority.renewServer([host], Number(now))
else if (rotation === 'intermediate') authority.rotateIntermediate([host], Number(now))
else authority.rotateRoot([host], Number(now))
process.stdout.write(`${count}\n`)
