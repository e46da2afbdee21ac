// One run of all tests: real files and real TLS, so a test may take seconds, but never the whole suite's time.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/clients/**', 'test/browser/**', 'test/fuzz/**', 'test/storms/**'],
    globalSetup: ['test/world/template.ts'],
    setupFiles: ['test/world/setup.ts'],
    testTimeout: 30_000,
    // What a test polls for may take seconds on a machine that does other work.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 60_000,
    pool: 'forks',
    // Also the threads that a test file starts get these.
    execArgv: ['--import', './test/world/typescript-in-threads.mjs'],
    maxWorkers: 2,
  },
})
