// The manifest of commands that the build writes, so that help and completion need not load the commands.
import { readFileSync } from 'node:fs'

export interface ManifestFlag {
  readonly name: string
  readonly type: 'boolean' | 'option'
  readonly char?: string
  readonly description?: string
  readonly helpValue?: string
  readonly helpGroup?: string
  readonly options?: readonly string[]
  readonly aliases?: readonly string[]
  readonly env?: string
  readonly allowNo?: boolean
  readonly multiple?: boolean
  readonly hidden?: boolean
  readonly required?: boolean
}

export interface ManifestArgument {
  readonly name: string
  readonly description?: string
  readonly required?: boolean
  readonly multiple?: boolean
  readonly options?: readonly string[]
}

export interface ManifestCommand {
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly aliases: readonly string[]
  readonly examples: readonly string[]
  readonly args: Readonly<Record<string, ManifestArgument>>
  readonly flags: Readonly<Record<string, ManifestFlag>>
  readonly hidden?: boolean
}

export interface Manifest {
  readonly version: string
  readonly commands: Readonly<Record<string, ManifestCommand>>
  /** The summary of each topic, and whether it is a resource. */
  readonly topics: Readonly<Record<string, { readonly summary: string; readonly isResource: boolean }>>
}

let manifest: Manifest | undefined

export function loadManifest(): Manifest {
  manifest ??= JSON.parse(readFileSync(new URL('../../oclif.manifest.json', import.meta.url), 'utf8')) as Manifest
  return manifest
}

/** The ids of commands, by id and by alias. */
export function mapCommandIds({ commands }: Manifest): Map<string, string> {
  const ids = new Map(Object.keys(commands).map((id) => [id, id]))
  for (const { id, aliases } of Object.values(commands)) for (const alias of aliases) ids.set(alias, id)
  return ids
}

/** An example with its placeholders replaced, as it is typed. */
export function renderExample(example: string, id: string): string {
  return example.replace('<%= config.bin %>', 'controller').replace('<%= command.id %>', id.replaceAll(':', ' '))
}
