// The storms: apart, because they take minutes and judge times.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/storms/**/*.test.ts'],
    globalSetup: ['test/world/template.ts'],
    setupFiles: ['test/world/setup.ts'],
    testTimeout: 180_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // One storm at a time: each judges what it does to a controller that has the machine for itself.
    maxWorkers: 1,
    fileParallelism: false,
  },
})
