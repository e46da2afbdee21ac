// Values that may be available already: cached records by id, which clients poll, are served without a promise. With one,
// GET current-api-session cost 1.35 times as much, and GET identities/{id} 1.18, which is over their bound. All other code awaits.

export type Awaitable<T> = T | Promise<T>

/** Passes the value to `next`: at once, if it is available. */
export function whenReady<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
