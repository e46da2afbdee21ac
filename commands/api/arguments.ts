// Derives the arguments of a command from the parameters of a path.
import type { Interfaces } from '@oclif/core'
import type { ApiDescription, OperationDescription, ResourceDescription } from '../../src/client/api-description.ts'
import { toNoun } from '../client/names.ts'
import { splitPath, toSingular } from '../foundation/naming.ts'
import { requiredArgument, variadicArgument } from '../framework/arguments.ts'

/** A parameter of a path, and the argument that provides it. */
export interface PathArgument {
  /** The name in the path, without the colon. */
  readonly parameter: string
  /** The name of the argument; help shows it in upper case. */
  readonly argument: string
  /** The part of the path before the parameter. */
  readonly collection: string
  /** The resource whose records can be named; undefined if the value is sent unchanged. */
  readonly resource: ResourceDescription | undefined
  /**
   * The path, with parameters, of the list in which the record is searched: the list above it if there is one, else
   * that of all records.
   */
  readonly list: string
}

/** The arguments for the parameters of the operation's path, in their order. */
export function listPathArguments({ path }: OperationDescription, api: ApiDescription): PathArgument[] {
  const parts = splitPath(path)
  return parts.flatMap((part, at) => {
    if (!part.startsWith(':')) return []
    const parameter = part.slice(1)
    const collection = parts[at - 1] ?? ''
    const resource = findReferencedResource(parameter, api) ?? api.resources[collection]
    const argument = resource?.name ?? (parameter === 'id' ? toSingular(collection) : parameter)
    const above = `/${parts.slice(0, at).join('/')}`
    const list = hasFilterableList(above, api) ? above : (resource?.path ?? '')
    return [{ parameter, argument, collection, resource, list }]
  })
}

/** Whether the path is that of a list that accepts filters. */
function hasFilterableList(path: string, { operations }: ApiDescription): boolean {
  return operations.some(
    (operation) => operation.method === 'GET' && operation.path === path && operation.query?.filter !== undefined,
  )
}

/** The resource that a member such as `serviceId` refers to, by its name. */
export function findReferencedResource(member: string, api: ApiDescription): ResourceDescription | undefined {
  const [, name] = /^(.+)Id$/.exec(member) ?? []
  const resourceName = name?.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return resourceName === undefined
    ? undefined
    : Object.values(api.resources).find((resource) => resource.name === resourceName)
}

/**
 * The arguments as oclif defines them.
 * @param isBulk whether the only one takes several records, or none if a flag selects them
 */
export function toOclifArguments(pathArguments: readonly PathArgument[], isBulk = false): Interfaces.ArgInput {
  return Object.fromEntries(
    pathArguments.map((pathArgument) => {
      const { argument } = pathArgument
      const description = describeArgument(pathArgument)
      return [
        argument,
        isBulk
          ? variadicArgument({ description: `${description} Can be repeated.` })
          : requiredArgument({ description }),
      ]
    }),
  ) as Interfaces.ArgInput
}

/** The nouns of records without a resource, if their paths have another word. */
const NOUNS: Readonly<Record<string, string>> = { audit: 'audit record', node: 'controller' }

function describeArgument({ parameter, argument, resource, collection }: PathArgument): string {
  if (resource) {
    const owner = resource.ownerSymbol ? ', or name of its identity' : ''
    return `${resource.isNamed ? 'Name or id' : 'Id'} of the ${toNoun(resource.name)}${owner}.`
  }
  if (parameter !== 'id' && parameter !== 'name') return `The ${toNoun(argument)}.`
  const noun = toSingular(collection)
  return `${parameter === 'id' ? 'Id' : 'Name'} of the ${NOUNS[noun] ?? toNoun(noun)}.`
}

/** The path with its parameters replaced by URL-encoded values. */
export function fillPath(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/:(\w+)/g, (_, parameter: string) => encodeURIComponent(values[parameter] ?? ''))
}
