// Values that may be available already: to await one of these costs a small request as much as its own work.

export type Awaitable<T> = T | Promise<T>

/** Passes the value to `next`: at once, if it is available. */
export function whenReady<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** All of the values: at once, if each is available. */
export function whenAllReady<T>(values: readonly Awaitable<T>[]): Awaitable<readonly T[]> {
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as readonly T[])
}
