// One kind of request that is sent over and over.
import type { Budget } from '../budgets.ts'
import type { Need } from '../controller/api.ts'
import type { Traffic } from '../generator/generator.ts'
import type { Network } from '../model/network.ts'

export interface Workload {
  readonly name: string
  readonly budget?: Budget
  /** The bare server checks a password for each request too. */
  readonly checksPassword?: boolean
  readonly needs: readonly Need[]
  readonly inFlight: number
  /** It must cost the same in a network of any size. */
  readonly isFlat?: boolean
  /** If it is flat: how many times as much it may cost among the most identities, if another number than for the rest. */
  readonly atMostGrowth?: number
  /** The requests to send. @param milliseconds for how long, if each request can be sent once only */
  traffic(network: Network, milliseconds: number): Promise<Traffic>
}

/** An operation of the client API. */
export const client = (method: Need['method'], path: string): Need => ({ api: 'client', method, path })
/** An operation of the management API. */
export const management = (method: Need['method'], path: string): Need => ({ api: 'management', method, path })
