#!/usr/bin/env node
// Hands the arguments to oclif; `--version` alone needs none of it.
import { readFileSync } from 'node:fs'

if (process.argv.length === 3 && process.argv[2] === '--version') {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  process.stdout.write(`controller/${version} node-${process.version}\n`)
} else {
  const { main } = await import('../dist/cli/main.js')
  process.exitCode = await main(process.argv.slice(2))
}
