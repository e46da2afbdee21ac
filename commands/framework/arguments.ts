// Arguments of commands, which are read from the command line only.
import { Args, type Interfaces } from '@oclif/core'

interface ArgumentOptions {
  readonly description: string
  readonly options?: readonly string[]
}

/**
 * An optional argument. By default oclif reads a missing argument from stdin, but stdin belongs to flags such as
 * `--data -`.
 */
export function optionalArgument({ options, ...common }: ArgumentOptions): Interfaces.Arg<string | undefined> {
  return Args.string({ ...common, ignoreStdin: true, ...(options ? { options: [...options] } : {}) })
}

/** A required argument, which is not read from stdin either. */
export function requiredArgument({ options, ...common }: ArgumentOptions): Interfaces.Arg<string> {
  return Args.string({ ...common, required: true, ignoreStdin: true, ...(options ? { options: [...options] } : {}) })
}

/** An argument that can be repeated, or missing. */
export function variadicArgument({ description }: ArgumentOptions): Interfaces.Arg<string | undefined> {
  return { ...optionalArgument({ description }), multiple: true }
}
