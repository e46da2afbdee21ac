// The environment that the systemd unit gives a controller, so that the bench measures what operators run.
import { readFileSync } from 'node:fs'

const UNIT = new URL('../../../docs/operations/edge-controller.service', import.meta.url)

/** The variables of the lines `Environment=NAME=VALUE`. */
export function readUnitEnvironment(): Readonly<Record<string, string>> {
  const lines = readFileSync(UNIT, 'utf8').matchAll(/^Environment=([A-Z_]+)=(\S+)$/gm)
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value]))
}
