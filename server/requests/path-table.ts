// The methods and APIs of each path, for requests that match no route: the router only knows that none matched.
import type { ListenerApi } from '../../src/settings/listener-settings.ts'
import { PathTree } from './path-tree.ts'

/** The methods and APIs of a path. */
export interface PathEntry {
  readonly methods: ReadonlySet<string>
  /** The APIs the path belongs to; undefined stands for those at the root that every listener has. */
  readonly apis: ReadonlySet<ListenerApi | undefined>
}

export class PathTable {
  readonly #tree = new PathTree<{ methods: Set<string>; apis: Set<ListenerApi | undefined> }>()

  /** @param path a route's path, with its parameters as `:id` */
  add(path: string, method: string, api: ListenerApi | undefined): void {
    const { methods, apis } = this.#tree.ensure(path, () => ({ methods: new Set(), apis: new Set() }))
    methods.add(method)
    apis.add(api)
  }

  /** The methods and APIs of all routes together at the path of a URL; undefined if it has none. */
  find(url: string): PathEntry | undefined {
    const path = decodePath(url)
    const entries = path === undefined ? [] : this.#tree.findAll(path)
    if (entries.length === 0) return undefined
    return {
      methods: new Set(entries.flatMap(({ methods }) => [...methods])),
      apis: new Set(entries.flatMap(({ apis }) => [...apis])),
    }
  }
}

/** The path of a URL; undefined if it cannot be decoded. */
function decodePath(url: string): string | undefined {
  try {
    return decodeURI(url.split(/[?#]/, 1)[0] ?? '')
  } catch {
    return undefined
  }
}
