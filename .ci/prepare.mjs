// Installs and builds what is missing or stale, and does nothing otherwise: `npm start` and `npm test` begin with it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { isBuilt, isInstalled } from './built.mjs'
import { describeInstallFailure } from './install-failure.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

/** Runs npm, and exits as it does if it fails. @param describeFailure makes a last line of what npm wrote to stderr */
async function run(args, describeFailure) {
  const stdio = ['inherit', 'inherit', 'pipe']
  const child = spawn(npm, args, { cwd: root, stdio, shell: process.platform === 'win32' })
  let output = ''
  child.stderr.on('data', (chunk) => {
    output += chunk
    process.stderr.write(chunk)
  })
  const [code] = await once(child, 'close')
  if (code === 0) return
  if (describeFailure) process.stderr.write(`\n${describeFailure(output)}\n`)
  process.exit(code ?? 1)
}

if (!isInstalled()) {
  process.stderr.write('Installing the libraries: this takes a minute or more.\n')
  await run(['ci', '--no-audit', '--no-fund'], (output) => describeInstallFailure(output, process.env.PATH ?? ''))
}

if (process.argv[2] === 'build' && !isBuilt()) {
  process.stderr.write('Building.\n')
  await run(['run', '--silent', 'build'])
}
