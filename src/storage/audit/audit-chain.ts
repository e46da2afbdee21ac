// Verifies that the audit is an unbroken chain, also after old records were pruned.
import { PRUNE } from './audit.ts'
import { type AuditSealer, CHAIN_START, isWellFormed, type SealedRecord } from './audit-seal.ts'

/** A record as it is stored: with its number. */
export interface ChainedRecord extends SealedRecord {
  readonly n: number
}

/** The `after` of a record which states that older records were pruned. */
export interface Anchor {
  /** The number of the newest pruned record. */
  readonly through: number
  /** Its hash, which the oldest remaining record continues. */
  readonly hash: string
  /** The hash before the oldest pruned record: that of the previous anchor, or the start of the chain. */
  readonly since: string
  /** The defects of the pruned records. */
  readonly findings?: readonly string[]
}

export interface ChainReport {
  /** One sentence for each defect; empty if the chain is intact. */
  readonly findings: readonly string[]
  readonly records: number
  readonly first: Pick<ChainedRecord, 'n' | 'hash'> | undefined
  readonly last: Pick<ChainedRecord, 'n' | 'hash'> | undefined
}

// The report is bounded, because a chain that was tampered with can have any number of defects.
const MAX_FINDINGS = 100

/**
 * Checks records one by one, in the order of their numbers. It cannot detect that the newest records are missing: for that, an
 * administrator stores the hash of `last`, and later verifies that it is still part of the chain.
 */
export class ChainVerifier {
  readonly #sealer: AuditSealer
  readonly #expectedHash: string | undefined
  readonly #findings: string[] = []
  #records = 0
  #first: ChainedRecord | undefined
  #last: ChainedRecord | undefined
  #anchor: Anchor | undefined
  #hasExpectedHash = false

  /** @param expectedHash a hash that was stored earlier, which must still be part of the chain */
  constructor(sealer: AuditSealer, expectedHash?: string) {
    this.#sealer = sealer
    this.#expectedHash = expectedHash
  }

  add(record: ChainedRecord): void {
    this.#records++
    if (this.#last && record.previousHash !== this.#last.hash)
      this.#note(`the audit is broken before record ${record.n}: records were removed or inserted`)
    if (!isWellFormed(record)) this.#note(`the audit record ${record.n} is malformed`)
    else if (!this.#sealer.isIntact(record)) this.#note(`the audit record ${record.n} was changed after it was written`)
    // Only a record that the controller itself sealed proves that older records were pruned.
    else if (record.operation === PRUNE.operation && record.resource === PRUNE.resource) this.#addAnchor(record)
    if (record.hash === this.#expectedHash) this.#hasExpectedHash = true
    this.#first ??= record
    this.#last = record
  }

  /** The defects of the records themselves, wherever the chain begins. */
  get findings(): readonly string[] {
    return this.#findings
  }

  report(): ChainReport {
    const start = this.#anchor?.hash ?? CHAIN_START
    if (!this.#first) this.#note('the audit is empty: the record of the creation of the controller is missing')
    if (this.#first && this.#first.previousHash !== start)
      this.#note(`the records before record ${this.#first.n} are missing, and no record states that they were pruned`)
    if (this.#expectedHash !== undefined && this.#expectedHash !== this.#anchor?.hash && !this.#hasExpectedHash)
      this.#note(`no record has the hash ${this.#expectedHash}`)
    return { findings: this.#findings, records: this.#records, first: this.#first, last: this.#last }
  }

  #addAnchor({ n, after }: ChainedRecord): void {
    if (after === null) return
    const anchor = JSON.parse(after) as Anchor
    if (this.#anchor && anchor.since !== this.#anchor.hash)
      this.#note(`records were removed before those that record ${n} states as pruned`)
    for (const finding of anchor.findings ?? [])
      this.#note(`before the records up to ${anchor.through} were pruned: ${finding}`)
    this.#anchor = anchor
  }

  #note(finding: string): void {
    if (this.#findings.length < MAX_FINDINGS) this.#findings.push(finding)
  }
}
