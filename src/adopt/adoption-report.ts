// The report of an adoption: what was taken over, what was not, and what the operator has to keep in mind.
import type { AdoptionNote } from './adoption-notes.ts'
import type { BundleVerdict } from './client-bundles.ts'
import type { AdoptedCounts } from './import-records.ts'

export interface AdoptionReport {
  readonly source: { readonly database: string; readonly digest: string; readonly schema: number }
  /** The name by which routers know the controller. */
  readonly controllerId: string
  readonly counts: AdoptedCounts
  /** How many rights were compared with those of the former controller. */
  readonly rights: {
    readonly dial: number
    readonly bind: number
    readonly routers: number
    /** Services and the edge routers over which they may be used. */
    readonly serviceRouters: number
  }
  /** Of the clients whose bundles the operator stated. */
  readonly clientBundles: readonly BundleVerdict[]
  readonly listeners: readonly { readonly address: string; readonly apis: readonly string[] }[]
  readonly advertise: readonly string[]
  /** Whether the signing certificate can be replaced. */
  readonly hasRootKey: boolean
  readonly rootEnds: string
  /** The time until which the former controller knows every certificate; null without a trial. */
  readonly trialEnds: string | null
  /** The edge routers that dial and host services themselves: each that is older than release 2.0 has to be restarted once. */
  readonly tunnelers: readonly string[]
  readonly notes: readonly AdoptionNote[]
  readonly noteCount: number
}
