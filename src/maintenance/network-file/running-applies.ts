// The plans that are being applied, so that a client can stop one between two of its transactions.

/** A plan that is being applied. */
interface RunningApply {
  readonly signal: AbortSignal
  /** Must be called when it has ended, however it did. */
  end(): void
}

export class RunningApplies {
  readonly #running = new Map<AbortController, string>()

  /** @param digest by which a client can stop it; empty if none can */
  begin(digest: string): RunningApply {
    const abort = new AbortController()
    this.#running.set(abort, digest)
    return { signal: abort.signal, end: () => this.#running.delete(abort) }
  }

  /** Returns whether a plan of this digest is being applied: it ends after its present transaction. */
  stop(digest: string): boolean {
    const stopping = [...this.#running].filter(([, other]) => digest !== '' && other === digest)
    for (const [abort] of stopping) abort.abort()
    return stopping.length > 0
  }
}
