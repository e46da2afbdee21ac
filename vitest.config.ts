// One run of all tests: real files and real TLS, so a test may take seconds, but never the whole suite's time.
import { defineConfig } from 'vitest/config'

/** Files that replace a module, which has to happen before any file has imported it. */
const isolated = ['test/auth/passwords.test.ts', 'test/hostile/password-guesses.test.ts']

/** Files on sessions at routers of release 1: they hold also if the tokens of sessions are signed, which routers of release 2 need. */
const sessionsAtRouters = [
  'api-sessions',
  'bad-input',
  'circuits',
  'faults',
  'session-proof',
  'terminators',
  'tunneler',
].map((name) => `test/routers/${name}.test.ts`)

const common = {
  setupFiles: ['test/world/setup.ts'],
  testTimeout: 30_000,
  // What a test polls for may take seconds on a machine that does other work.
  expect: { poll: { timeout: 20_000 } },
  hookTimeout: 60_000,
  pool: 'forks' as const,
  // More than the two cores of a small machine, because many tests wait for processes, sockets and clocks.
  maxWorkers: 3,
}

export default defineConfig({
  test: {
    globalSetup: ['test/world/run-directory.ts', 'test/world/template.ts', 'test/world/threads.ts'],
    // A run transforms only what has changed since the last one.
    experimental: { fsModuleCache: true },
    projects: [
      {
        test: {
          ...common,
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: ['test/clients/**', 'test/browser/**', 'test/fuzz/**', 'test/storms/**', ...isolated],
          // The files that one process runs share what they import: most take less time than the imports.
          isolate: false,
        },
      },
      {
        test: {
          ...common,
          name: 'signed-tokens',
          include: sessionsAtRouters,
          isolate: false,
          env: { CONTROLLER_TEST_SESSION_TOKENS: 'signed' },
        },
      },
      { test: { ...common, name: 'isolated', include: isolated } },
    ],
  },
})
