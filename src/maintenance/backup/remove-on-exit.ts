// Removes temporary files also if the process exits before the work on them ends.

/**
 * Calls `remove` if the process exits. Returns a function that calls it at once, and not again on exit.
 * @param remove must be synchronous
 */
export function removeOnExit(remove: () => void): () => void {
  process.on('exit', remove)
  return () => {
    process.off('exit', remove)
    remove()
  }
}
