// The settings with which the launcher starts Node.js, so that the bench measures what operators run.
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const LAUNCHER = fileURLToPath(new URL('../../bin/controller', import.meta.url))

export interface LauncherSettings {
  readonly environment: Readonly<Record<string, string>>
  /** For the runtime, such as `--max-semi-space-size=8`. */
  readonly nodeOptions: readonly string[]
}

/** The variables that it exports by default, and the options that it gives to Node.js. */
export function readLauncherSettings(): LauncherSettings {
  const text = readFileSync(LAUNCHER, 'utf8').replaceAll('$here', dirname(LAUNCHER))
  const variables = text.matchAll(/^export ([A-Z_]+)="\$\{\1-(\S+)\}"$/gm)
  const [, options = ''] = /^exec node ((?:--\S+ )*)/m.exec(text) ?? []
  return {
    environment: Object.fromEntries([...variables].map(([, name = '', value = '']) => [name, value])),
    nodeOptions: options.split(' ').filter(Boolean),
  }
}
