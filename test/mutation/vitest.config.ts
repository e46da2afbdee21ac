// The tests that mutation testing runs: those of the mutated code itself, each quick enough to run once for each mutant.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: process.env.MUTATION_TESTS?.split(',') ?? [
      'test/policy/**/*.test.ts',
      'test/access/**/*.test.ts',
      'test/auth/**/*.test.ts',
      'test/store/engine.test.ts',
    ],
    exclude: [
      // Asks every route as every kind of caller.
      'test/auth/routes.test.ts',
      // Run commands of dist/, which holds no mutants.
      'test/access/advice.test.ts',
      'test/access/questions.test.ts',
    ],
    globalSetup: ['test/world/template.ts', 'test/world/threads.ts'],
    setupFiles: ['test/world/setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
