// Measures what requests cost: a fresh controller, a loaded model, one workload after another.
//
//   node bench/measure.mjs [--model small|medium|large] [--only TEXT] [--seconds 4] [--in-flight N] [--profile]
//
// Prints for each workload: answers per second, latency, and the server's CPU microseconds per request, beside those of a
// bare node:https server that answers the same number of bytes. Needs a build (npm run build).
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { drive, open, requestBytes } from './connection.mjs'

const root = new URL('..', import.meta.url).pathname
const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'medium' },
    only: { type: 'string' },
    seconds: { type: 'string', default: '4' },
    'in-flight': { type: 'string' },
    profile: { type: 'boolean', default: false },
  },
})
const MODELS = {
  small: { identities: 1_000, services: 200, policies: 50 },
  medium: { identities: 10_000, services: 1_000, policies: 100 },
  large: { identities: 100_000, services: 2_000, policies: 250 },
}
const model = MODELS[options.model]
const MANAGEMENT = '/edge/management/v1'
const CLIENT = '/edge/client/v1'

const directory = mkdtempSync(join(tmpdir(), 'bench-'))
const port = await freePort()
const target = { host: '127.0.0.1', port }
const server = await startServer()
try {
  const token = await signIn('admin', 'correct horse battery')
  await load(token)
  for (const workload of await workloads(token)) {
    if (options.only && !workload.name.includes(options.only)) continue
    await measure(workload)
  }
} finally {
  server.kill('SIGINT')
  await new Promise((resolve) => server.on('close', resolve))
  if (options.profile) process.stderr.write(`profiles are in ${directory}\n`)
  else rmSync(directory, { recursive: true, force: true })
}

// ---- the controller ---------------------------------------------------------------------------------------------------

async function startServer() {
  const password = join(directory, 'password.txt')
  writeFileSync(password, 'correct horse battery')
  const data = join(directory, 'data')
  await run([
    'init',
    '--data-dir',
    data,
    '--listen',
    `127.0.0.1:${port}`,
    '--admin-username',
    'admin',
    '--admin-password-file',
    password,
  ])
  const profiling = options.profile ? ['--cpu-prof', `--cpu-prof-dir=${directory}`] : []
  const child = spawn(process.execPath, [...profiling, join(root, 'bin/run.js'), 'serve', '--data-dir', data], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, CONTROLLER_LOG_LEVEL: 'error' },
  })
  await new Promise((resolve, reject) => {
    child.stdout.once('data', resolve)
    child.once('close', (code) => reject(new Error(`the controller ended with ${code}`)))
  })
  return child
}

function run(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, 'bin/run.js'), ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`${args[0]} ended with ${code}`))))
  })
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => probe.once('listening', resolve))
  const { port: found } = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  return found
}

async function send(request) {
  const connection = await open(target)
  const answer = await connection.request(requestBytes(request))
  connection.close()
  return JSON.parse(answer.body.toString())
}

async function signIn(username, password) {
  const { data } = await send({
    method: 'POST',
    path: `${MANAGEMENT}/authenticate?method=password`,
    body: { username, password },
  })
  return data.token
}

// ---- the model --------------------------------------------------------------------------------------------------------

function identityBody(at) {
  return {
    name: `identity-${String(at).padStart(6, '0')}`,
    type: 'Device',
    isAdmin: false,
    roleAttributes: [`team-${at % model.policies}`, `site-${at % 37}`],
  }
}

async function load(token) {
  const post = (path, body) => requestBytes({ method: 'POST', path: `${MANAGEMENT}/${path}`, token, body })
  const begun = performance.now()
  const cpu = cpuMicroseconds()
  await drive(target, 8, (at) => post('identities', identityBody(at)), { count: model.identities })
  const seconds = (performance.now() - begun) / 1000
  report('identities created while loading', model.identities / seconds, (cpuMicroseconds() - cpu) / model.identities)
  const roles = (at) => [`app-${at % model.policies}`, `app-${(at + model.policies / 2) % model.policies}`]
  await drive(
    target,
    8,
    (at) => post('services', { name: `service-${at}`, encryptionRequired: true, roleAttributes: roles(at) }),
    {
      count: model.services,
    },
  )
  const policy = (at) => ({
    name: `policy-${at}`,
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`#team-${at}`],
    serviceRoles: [`#app-${at}`],
  })
  await drive(target, 8, (at) => post('service-policies', policy(at)), { count: model.policies })
  await drive(target, 1, () => requestBytes({ path: `${MANAGEMENT}/version` }), { count: 2_000 })
  process.stdout.write(
    `resident after loading: ${Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024)} MiB\n`,
  )
}

async function workloads(token) {
  const ids = await identityIds(token)
  const id = (at) => ids[(at * 7919) % ids.length]
  const get = (path) => () => requestBytes({ path, token })
  const listed = (query) => `${MANAGEMENT}/identities?${new URLSearchParams(query)}`
  const name = (at) => identityBody((at * 7919) % model.identities).name
  let made = 0
  return [
    { name: 'GET version', inFlight: 8, budget: 55, next: () => requestBytes({ path: `${MANAGEMENT}/version` }) },
    { name: 'GET current-identity', inFlight: 8, budget: 63, next: get(`${CLIENT}/current-identity`) },
    {
      name: 'GET identities/{id}',
      inFlight: 8,
      budget: 91,
      next: (at) => requestBytes({ path: `${MANAGEMENT}/identities/${id(at)}`, token }),
    },
    { name: 'GET identities?limit=10', inFlight: 8, budget: 156, next: get(`${MANAGEMENT}/identities?limit=10`) },
    {
      name: 'GET identities by name',
      inFlight: 8,
      budget: 111,
      next: (at) => requestBytes({ path: listed({ filter: `name="${name(at)}"` }), token }),
    },
    {
      name: 'GET identities, 500 by name contains',
      inFlight: 4,
      budget: 4170,
      next: get(listed({ filter: 'name contains "identity" sort by name limit 500' })),
    },
    {
      name: 'GET identities by role attribute',
      inFlight: 8,
      next: (at) =>
        requestBytes({
          path: listed({ filter: `anyOf(roleAttributes) = "team-${at % model.policies}" sort by name` }),
          token,
        }),
    },
    {
      name: 'GET identities, createdAt desc',
      inFlight: 8,
      next: get(listed({ filter: 'true sort by createdAt desc' })),
    },
    {
      name: 'POST identities with ott',
      inFlight: 8,
      budget: 460,
      next: () =>
        requestBytes({
          method: 'POST',
          path: `${MANAGEMENT}/identities`,
          token,
          body: { ...identityBody(0), name: `made-${made++}`, enrollment: { ott: true } },
        }),
    },
    {
      name: 'PATCH identities/{id} role attributes',
      inFlight: 8,
      budget: 240,
      next: (at) =>
        requestBytes({
          method: 'PATCH',
          path: `${MANAGEMENT}/identities/${id(at)}`,
          token,
          body: { roleAttributes: [`team-${at % model.policies}`, `site-${(at * 31) % 41}`] },
        }),
    },
  ]
}

async function identityIds(token) {
  const ids = []
  for (let offset = 0; offset < Math.min(model.identities, 10_000); offset += 500) {
    const { data } = await send({ path: `${MANAGEMENT}/identities?limit=500&offset=${offset}`, token })
    ids.push(...data.filter(({ isDefaultAdmin }) => !isDefaultAdmin).map((record) => record.id))
  }
  return ids
}

// ---- figures ----------------------------------------------------------------------------------------------------------

async function measure({ name, inFlight, next, budget }) {
  const flying = Number(options['in-flight'] ?? inFlight)
  const milliseconds = Number(options.seconds) * 1000
  await drive(target, flying, next, { milliseconds: milliseconds / 4 })
  const cpu = cpuMicroseconds()
  const begun = performance.now()
  const latencies = await drive(target, flying, next, { milliseconds })
  const seconds = (performance.now() - begun) / 1000
  report(name, latencies.length / seconds, (cpuMicroseconds() - cpu) / latencies.length, budget, latencies)
}

/** User and system time of the server process; a clock tick is 10 ms. */
function cpuMicroseconds() {
  const fields = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

function report(name, rate, cpu, budget, latencies = []) {
  const sorted = latencies.toSorted((a, b) => a - b)
  const quantile = (q) => (sorted.length ? sorted[Math.floor(sorted.length * q)].toFixed(2) : '-')
  const verdict = budget === undefined ? '' : `of ${budget}${cpu > budget ? '  OVER' : ''}`
  process.stdout.write(
    `${name.padEnd(38)} ${rate.toFixed(0).padStart(7)}/s  p50 ${quantile(0.5).padStart(6)}  p99 ${quantile(0.99).padStart(6)} ms  cpu ${cpu.toFixed(0).padStart(5)} µs ${verdict}\n`,
  )
}
