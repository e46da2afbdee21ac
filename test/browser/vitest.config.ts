// The tests with a real browser: apart, because not every machine has one.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/world/template.ts', 'test/world/threads.ts'],
    setupFiles: ['test/world/setup.ts'],
    testTimeout: 60_000,
    // As in the other tests.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 120_000,
    maxWorkers: 1,
    pool: 'forks',
  },
})
