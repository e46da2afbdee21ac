// The fuzzer: apart, because it installs one first and runs for minutes.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/fuzz/**/*.test.ts'],
    globalSetup: ['test/world/template.ts'],
    testTimeout: 1_800_000,
    hookTimeout: 300_000,
    maxWorkers: 1,
  },
})
