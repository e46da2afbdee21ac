#!/usr/bin/env node
// Hands the arguments to oclif; `--version` alone needs none of it.
import { existsSync, readFileSync } from 'node:fs'
import { userInfo } from 'node:os'

if (process.argv.length === 3 && process.argv[2] === '--version') {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  process.stdout.write(`controller/${version} node-${process.version}\n`)
} else if (!existsSync(new URL('../dist/cli/main.js', import.meta.url))) {
  process.stderr.write('this clone is not built yet\nTry: npm start, which builds and serves, or npm run build\n')
  process.exitCode = 1
} else {
  try {
    userInfo()
  } catch {
    // The account of a container often has no entry in the list of users, which oclif asks for what the environment lacks.
    process.env.HOME ??= '/'
    process.env.SHELL ??= 'unknown'
  }
  const { main } = await import('../dist/cli/main.js')
  process.exitCode = await main(process.argv.slice(2))
}
