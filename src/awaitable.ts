// Values that may be at hand already: to await one of these costs a small request as much as its own work.

export type Awaitable<T> = T | Promise<T>

/** Passes the value to `next`: at once, if it is at hand. */
export function whenReady<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
