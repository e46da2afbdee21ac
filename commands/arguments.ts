// Arguments of commands: only ever from the command line.
import { Args, type Interfaces } from '@oclif/core'

interface ArgumentOptions {
  readonly description: string
  readonly options?: readonly string[]
}

/** An argument. oclif would read one that is missing from stdin, which belongs to `--data -` and the like. */
export function optionalArgument({ options, ...common }: ArgumentOptions): Interfaces.Arg<string | undefined> {
  return Args.string({ ...common, ignoreStdin: true, ...(options ? { options: [...options] } : {}) })
}

/** An argument that has to be there. */
export function requiredArgument({ options, ...common }: ArgumentOptions): Interfaces.Arg<string> {
  return Args.string({ ...common, required: true, ignoreStdin: true, ...(options ? { options: [...options] } : {}) })
}
