// `controller access`: what you can dial and host, over which routers, and what is missing.
import { findNearest } from '../../src/foundation/nearest.ts'
import { CLIENT_PATH, type Client } from '../client/client.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { optionalArgument } from '../framework/arguments.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { escapeLines } from '../terminal/text.ts'
import { listOwnAccess, type OwnAccess } from './own-access.ts'

export const access = defineConnectedCommand({
  summary: 'Shows what you can dial and host, over which routers, and what is missing.',
  args: { service: optionalArgument({ description: 'Name of a service. Default: all that policies grant you.' }) },
  example: '',
  base: CLIENT_PATH,
  async run({ client, args, print }) {
    if (args.service !== undefined) {
      const own = await findOwnAccess(client, args.service)
      await print({ kind: 'done', sentence: escapeLines(renderOwnAccess(own)), facts: { ...own } })
      return own.missing.length === 0 ? EXIT.done : EXIT.denied
    }
    const items = (await listOwnAccess(client)).map((own) => ({
      ...own,
      dial: toState(own, 'Dial'),
      host: toState(own, 'Bind'),
      routers: own.edgeRouters.filter(({ isOnline }) => isOnline).map(({ name }) => name),
    }))
    await print({ kind: 'list', name: 'access', items, columns: ['name', 'dial', 'host', 'routers', 'missing'] })
    return EXIT.done
  },
})

function toState({ permissions, allowed }: OwnAccess, type: 'Dial' | 'Bind'): string {
  return !permissions.includes(type) ? 'no' : allowed.includes(type) ? 'yes' : 'blocked'
}

/** @throws CommandError with exit code 5 if no policy grants the caller a service of this name */
export async function findOwnAccess(client: Client, name: string): Promise<OwnAccess> {
  const [own] = await listOwnAccess(client, `name = ${JSON.stringify(name)}`)
  if (own) return own
  const near = findNearest(
    name,
    (await listOwnAccess(client)).map((other) => other.name),
  )
  const hint = near.length > 0 ? near.join(', ') : 'ask an administrator, who finds out why: controller policy advise'
  throw new CommandError(EXIT.notFound, 'NOT_FOUND', `${client.target}: no policy grants you the service ${name}`, {
    hint,
  })
}

/** The links between the caller and a service, as `policy advise` shows them to administrators. */
export function renderOwnAccess({ name, permissions, allowed, edgeRouters, missing }: OwnAccess): string {
  const verbs = (types: readonly string[]) => types.map((type) => (type === 'Dial' ? 'dial' : 'host')).join(' and ')
  const routers = edgeRouters.map((router) => `${router.name} (${router.isOnline ? 'online' : 'offline'})`).join(', ')
  return [
    `${name}: ${missing.length === 0 ? `you can ${verbs(allowed)} it` : 'something is missing'}`,
    '',
    `  policies let you   ${verbs(permissions)}`,
    `  edge routers       ${routers === '' ? 'none' : routers}`,
    ...missing.map((text) => `  missing            ${text}`),
  ].join('\n')
}
