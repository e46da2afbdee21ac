// The beginning of a log in tests that need no rows of a network.
import { LogCipher } from '../../src/storage/postgres/log-cipher.ts'
import type { LogStart } from '../../src/storage/postgres/log-tables.ts'

export const CLUSTER_KEY = Buffer.alloc(32, 7)
export const logCipher = new LogCipher(CLUSTER_KEY)

export const LOG_START: LogStart = {
  ...{ position: 0, chain: '', network: 'a network' },
  schema: { migration: '0001-initial', digest: 'a digest', release: '1.0.0' },
}
