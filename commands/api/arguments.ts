// Arguments from the parameters of a path: which record each of them means.
import type { Interfaces } from '@oclif/core'
import type { ApiDescription, OperationDescription, ResourceDescription } from '../../src/client/api-description.ts'
import { requiredArgument } from '../arguments.ts'
import { toNoun } from '../names.ts'
import { splitPath, toSingular } from '../naming.ts'

/** One parameter of a path, and the argument that gives it. */
export interface PathArgument {
  /** As in the path, without the colon. */
  readonly parameter: string
  /** As in help: `IDENTITY`. */
  readonly argument: string
  /** Records are named, too; anything else is taken as it is. */
  readonly resource: ResourceDescription | undefined
  /** The list that the record is looked for in, as a path with parameters; a caller sees his own where there is such a list. */
  readonly list: string
}

export function listPathArguments({ path }: OperationDescription, api: ApiDescription): PathArgument[] {
  const parts = splitPath(path)
  return parts.flatMap((part, at) => {
    if (!part.startsWith(':')) return []
    const parameter = part.slice(1)
    const before = parts[at - 1] ?? ''
    const resource = findReferencedResource(parameter, api) ?? api.resources[before]
    const argument = resource?.name ?? (parameter === 'id' ? toSingular(before) : parameter)
    const above = `/${parts.slice(0, at).join('/')}`
    return [{ parameter, argument, resource, list: isSearched(above, api) ? above : `/${resource?.plural}` }]
  })
}

/** Whether there is a list at the path that takes filters. */
function isSearched(path: string, { operations }: ApiDescription): boolean {
  return operations.some(
    (operation) => operation.method === 'GET' && operation.path === path && operation.query?.filter !== undefined,
  )
}

/** The resource that a member such as `serviceId` refers to, by its name. */
export function findReferencedResource(member: string, api: ApiDescription): ResourceDescription | undefined {
  const [, name] = /^(.+)Id$/.exec(member) ?? []
  const wanted = name?.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return wanted === undefined ? undefined : Object.values(api.resources).find((resource) => resource.name === wanted)
}

export function toOclifArguments(found: readonly PathArgument[]): Interfaces.ArgInput {
  return Object.fromEntries(
    found.map(({ argument, resource }) => [
      argument,
      requiredArgument({
        description: resource
          ? `${resource.isNamed ? 'Name or id' : 'Id'} of the ${toNoun(resource.name)}.`
          : `Which ${toNoun(argument)}.`,
      }),
    ]),
  )
}

/** The path with the parameters filled in. */
export function fillPath(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/:(\w+)/g, (_, parameter: string) => encodeURIComponent(values[parameter] ?? ''))
}
