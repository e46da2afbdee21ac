// What a record is linked with, so that a person sees before deleting it what would lose it.
import type { ApiDescription, ResourceDescription } from '../../src/client/api-description.ts'
import type { Client } from '../../src/client/client.ts'
import { spoken } from '../names.ts'
import { segments, singular } from '../naming.ts'

/**
 * Every sub-list of the record that is not empty, with how many it holds: `2 service policies`. What a deletion takes along
 * and whose access ends with it is more than links tell; a controller that can say that answers in their place.
 */
export async function linkedWith(
  client: Client,
  { plural }: ResourceDescription,
  id: string,
  api: ApiDescription,
): Promise<string[]> {
  const lists = api.operations.filter(({ method, path, returns, query }) => {
    const [head, parameter, word, ...rest] = segments(path)
    const isSubList = head === plural && parameter === ':id' && word !== undefined && rest.length === 0
    return isSubList && method === 'GET' && returns.kind === 'list' && query?.limit !== undefined
  })
  const counts = await Promise.all(
    lists.map(async ({ path }) => {
      const { data, meta } = await client.call('GET', `${path.replace(':id', encodeURIComponent(id))}?limit=1`)
      const count = meta.pagination?.totalCount ?? (data as unknown[]).length
      const word = segments(path).at(-1) ?? ''
      const noun = count === 1 ? (api.resources[word]?.name ?? singular(word)) : word
      return { count, noun: spoken(noun) }
    }),
  )
  return counts.filter(({ count }) => count > 0).map(({ count, noun }) => `${count} ${noun}`)
}
