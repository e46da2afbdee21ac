// The settings that `bin/controller` starts Node.js with, which are read before any of our code runs.
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { makeAuthority } from '../world/authorities.ts'

const BIN = join(import.meta.dirname, '../../bin')

// Prints how many tickets a client receives.
const COUNT_TICKETS = `
  const { createServer, connect } = require('node:tls')
  const { KEY, CERT } = process.env
  const server = createServer({ key: KEY, cert: CERT }, (socket) => socket.end('.'))
  server.listen(0, '127.0.0.1', () => {
    let count = 0
    const { port } = server.address()
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, minVersion: 'TLSv1.3' })
    socket.on('session', () => { count += 1 })
    socket.on('data', () => {})
    socket.on('close', () => { console.log(count); server.close() })
  })`

it('the launcher has OpenSSL send one ticket for each session', async () => {
  const { pem, keyPem } = await makeAuthority('CN=server')
  const folder = mkdtempSync(join(tmpdir(), 'launcher-'))
  for (const name of ['controller', 'openssl.cnf']) cpSync(join(BIN, name), join(folder, name))
  // The script that it starts.
  writeFileSync(join(folder, 'run.js'), COUNT_TICKETS)
  const { OPENSSL_CONF: _, ...inherited } = process.env
  const path = `${dirname(process.execPath)}:${process.env.PATH}`
  const env = { ...inherited, PATH: path, KEY: keyPem, CERT: pem }

  const { stdout } = await promisify(execFile)(join(folder, 'controller'), [], { env })
  rmSync(folder, { recursive: true })

  expect(stdout).toBe('1\n')
})

it('the launcher leaves all flags of a command to it, also those that Node.js has itself', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'launcher-'))
  for (const name of ['controller', 'openssl.cnf']) cpSync(join(BIN, name), join(folder, name))
  writeFileSync(join(folder, 'run.js'), 'console.log(JSON.stringify(process.argv.slice(2)))')
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` }

  const { stdout } = await promisify(execFile)(join(folder, 'controller'), ['adopt', '--env-file', 'none'], { env })
  rmSync(folder, { recursive: true })

  expect(JSON.parse(stdout)).toEqual(['adopt', '--env-file', 'none'])
})
