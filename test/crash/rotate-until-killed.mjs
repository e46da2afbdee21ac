// A process that rotates an authority, and kills itself at one of the moments at which a file is put in place.
import { register } from 'node:module'
import { killAtRename } from '../world/killed-at-rename.mjs'

const [directory, rotation, host, now, moment] = process.argv.slice(2)
// Before a file is replaced its new content lies beside it; after that, no more than the rename is done.
const countMoments = killAtRename(moment)
register('../world/typescript-loader.mjs', import.meta.url)
const { Authority } = await import('../../src/pki/authority.ts')

const authority = Authority.load(directory)
if (rotation === 'finish') authority.finishRootRotation(Number(now))
else if (rotation === 'renew') authority.renewServer([host], Number(now))
else if (rotation === 'intermediate') authority.rotateIntermediate([host], Number(now))
else authority.rotateRoot([host], Number(now))
process.stdout.write(`${countMoments()}\n`)
