// Makes the command of a hint ask the controller that the failed one asked: without its flags, it would ask that of the current profile.
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import type { Failure } from './failure-text.ts'

const CHOICE = /^--(?:offline$|(?:controller|profile)(?:=|$))/
const CONNECTION_FLAG = /^--(?:offline|(?:data-dir|controller|profile)(?:=.*)?)$/
// Commands that are about a profile name it themselves, and help needs no controller.
const OWN_CONNECTION =
  /^controller (?:login|profile|help|init|serve)\b|--(?:help|offline|data-dir|controller|profile)\b/
/** One command and nothing else: no sentence, and no list of several. */
const ONE_COMMAND = /^controller [a-z][^,:;]*$/

/** The failure with the flags of the failed command in its hint, if that is a command for the same controller. */
export function withSameConnection(failure: Failure, argv: readonly string[]): Failure {
  const { hint } = failure
  if (hint === undefined || !ONE_COMMAND.test(hint) || OWN_CONNECTION.test(hint)) return failure
  const flags = listConnectionFlags(argv)
  return flags.length === 0 ? failure : { ...failure, hint: [hint, ...flags.map(quoteShellWord)].join(' ') }
}

/** The words that chose the controller. A command that always works on a data directory has none, and no flag for the others. */
function listConnectionFlags(argv: readonly string[]): string[] {
  if (!argv.some((word) => CHOICE.test(word))) return []
  return argv.flatMap((word, at) => {
    if (!CONNECTION_FLAG.test(word)) return []
    return word === '--offline' || word.includes('=') ? [word] : [word, argv[at + 1] ?? '']
  })
}
