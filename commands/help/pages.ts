// What all commands have in common, as pages of help.
import { exitCodeMeanings } from '../exit-codes.ts'

interface HelpPage {
  readonly summary: string
  text(): string
}

const filters = `Filters: which records a list shows.

  controller identity list --filter 'anyOf(roleAttributes) = "staff" sort by name limit 20'

A filter is a condition, then "sort by", "skip" and "limit", all of them optional and in this order.

Comparing
  name = "web"                         also !=, and for numbers and times <, <=, >, >=
  name contains "web"                  icontains does not tell upper from lower case
  name in ["web", "mail"]              not in
  createdAt > datetime(2030-01-31T12:00:00Z)
  defaultHostingCost between 10 and 20
  externalId = null
  isAdmin = true

Sets
  anyOf(roleAttributes) = "staff"      at least one of them
  allOf(roleAttributes) != "guest"     every one of them
  isEmpty(roleAttributes)
  count(roleAttributes) > 2

Tags
  tags.site = "north"

Joining
  and, or, not, and brackets. "and" and "or" bind equally, from the right, and "not" takes all that follows:
  use brackets where they are mixed.

Order and window
  sort by name desc, createdAt
  skip 20 limit 10                     limit none is all of them

In a shell, put the filter in single quotes. The fields of a list that a filter can name are told by
"controller api GET '/identities?limit=1'", under meta.filterableFields.`

const output = `Output: the result goes to stdout, and everything else to stderr.

  -o table   for people; the default. On a terminal as wide as it, with times such as "in 3 hours";
             elsewhere plain columns with everything in full.
  -o json    one record is its own object. A list is {"apiVersion","kind","items"}.
  -o jsonl   a line a record, written while the list arrives: any length, in the same little memory.
  -o yaml    the same as json.
  -o name    the names alone, or the ids where there are no names.
  -o jwt     the enrollment JWT alone; "identity create laptop -o jwt" makes one.

Members are only ever added to JSON. With json, jsonl and yaml, an error is one JSON object on stderr with the members
code, message, field, hint and requestId; what does not apply is left out.

Lists are whole unless --limit says otherwise, and a list that was cut says so on stderr.

Colours are used on a terminal only, and not where NO_COLOR is set. Without a terminal nothing is ever asked: what would
have been asked is a flag, and --yes answers before something is destroyed.`

const exitCodes = () =>
  [
    'Exit codes: what the end of a command says, the same for all of them.',
    '',
    ...exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`),
    '',
    'A reader that closes the pipe early, as in "| head", is no failure: the exit code is 0.',
  ].join('\n')

/** By name, as `controller help NAME` shows them. */
export const helpPages: Readonly<Record<string, HelpPage>> = {
  'exit-codes': { summary: 'What the exit code of a command says.', text: exitCodes },
  filters: { summary: 'The language in which lists are searched and sorted.', text: () => filters },
  output: { summary: 'The forms of output, and what goes where.', text: () => output },
}
