// The registry of compiled resources, made once when the process starts.
import type { AnyResource } from '../resources/define.ts'
import { resources } from '../resources/index.ts'
import { listMentions } from './columns.ts'
import { type CompiledResource, compileResource } from './compiled-resource.ts'

const mentions = listMentions(resources)

/** Every resource, compiled. */
export const compiledResources: readonly CompiledResource[] = (resources as readonly AnyResource[]).map((resource) =>
  compileResource(resource, resources, mentions),
)

const byPlural: ReadonlyMap<string, CompiledResource> = new Map(
  compiledResources.map((compiled) => [compiled.definition.plural, compiled]),
)

/** The compiled resource of that plural name. @throws if there is none, which is a mistake in the code that asks */
export function getCompiledResource(plural: string): CompiledResource {
  const compiled = byPlural.get(plural)
  if (!compiled) throw new Error(`no resource is called ${plural}`)
  return compiled
}
