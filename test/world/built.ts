// Keeps tests of what is built from a dist/ that the sources have left behind.

/** @throws if dist/ is missing, or was built from other sources than those beside it */
export async function requireBuilt(): Promise<void> {
  // Outside of what TypeScript checks, as the rest of the build.
  const built = '../../.ci/built.mjs'
  const { isBuilt } = (await import(/* @vite-ignore */ built)) as { isBuilt(): boolean }
  if (!isBuilt()) throw new Error('dist/ is stale or missing: run `npm run build`, then the tests again')
}
