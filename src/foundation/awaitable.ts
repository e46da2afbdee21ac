// Values that may be available already. Records by id that are cached, and the polls of clients, are served without a promise,
// because the timeout of a promise costs a small request a tenth of its work. All other code awaits.

export type Awaitable<T> = T | Promise<T>

/** Passes the value to `next`: at once, if it is available. */
export function whenReady<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
