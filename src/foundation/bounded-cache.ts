// Caches that hold a number of entries at most.
import { LRUCache } from 'lru-cache'

/** A cache that drops the entries that were used least recently, if it has more than so many. */
export function createBoundedCache<Value extends {}>(maxEntries: number): LRUCache<string, Value> {
  // By size, because with a number of entries the cache would reserve the memory of all of them.
  return new LRUCache({ maxSize: maxEntries, sizeCalculation: () => 1 })
}
