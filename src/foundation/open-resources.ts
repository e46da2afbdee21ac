// Resources that were opened in sequence and are closed in reverse order, also if opening the next one fails.

export class OpenResources {
  readonly #closes: (() => unknown)[] = []

  /** Registers the function that closes what was just opened. */
  add(close: () => unknown): void {
    this.#closes.push(close)
  }

  /** Closes all resources in reverse order, also if closing one of them fails. @returns the errors */
  async close(): Promise<unknown[]> {
    const failures: unknown[] = []
    for (const close of this.#closes.splice(0).reverse()) {
      try {
        await close()
      } catch (error) {
        failures.push(error)
      }
    }
    return failures
  }
}

/** Runs `open`. If it fails, closes what it has opened. */
export async function openOrCloseAll<T>(open: (opened: OpenResources) => Promise<T>): Promise<T> {
  const opened = new OpenResources()
  try {
    return await open(opened)
  } catch (error) {
    await opened.close()
    throw error
  }
}
