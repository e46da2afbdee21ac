// The help pages on topics that concern all commands.
import { exitCodeMeanings } from '../foundation/exit-codes.ts'

interface HelpPage {
  readonly summary: string
  text(): string
}

const filters = `Filters: select the records of a list.

  controller identity list --filter 'anyOf(roleAttributes) = "staff" sort by name limit 20'

A filter is a condition, "sort by", "skip" and "limit"; each is optional, in this order.

Comparisons
  name = "web"                         also !=, and for numbers and times <, <=, >, >=
  name contains "web"                  icontains ignores case
  name in ["web", "mail"]              not in
  createdAt > datetime(2030-01-31T12:00:00Z)
  defaultHostingCost between 10 and 20
  externalId = null
  isAdmin = true

Sets
  anyOf(roleAttributes) = "staff"      at least one element
  allOf(roleAttributes) != "guest"     every element
  isEmpty(roleAttributes)
  count(roleAttributes) > 2

Tags
  tags.site = "north"

Logic
  and, or, not, and parentheses. "and" and "or" have the same precedence and associate to the right; "not" applies to
  everything that follows. Use parentheses if a filter mixes them.

Order and paging
  sort by name desc, createdAt
  skip 20 limit 10                     limit none: all records

In a shell, put the filter in single quotes. meta.filterableFields lists the fields that a filter can use:
"controller api GET '/identities?limit=1'".`

const roles = `Roles: how policies select records.

  controller service-policy create web-users --type Dial --identity-roles '#staff' --service-roles '@web'

A policy selects identities, services, edge routers and posture checks by roles, in flags such as --identity-roles.

  #staff     the records with the role attribute "staff", also those that get it later
  @web       the one record with the name or id "web"
  #all       all records

Role attributes are set without the sign, and one at a time: "identity update laptop --add-role staff". With --semantic AnyOf one of
the roles is enough, with AllOf a record needs all of the role attributes.

Put roles in single quotes: a shell takes an unquoted # for the begin of a comment. "controller policy advise laptop web" explains
which policies match, and which nearly do.`

const output = `Output: the result is written to stdout, everything else to stderr.

  -o table   the default: one line per record, the name first. On a terminal it fits the width and shows times such as
             "in 3 hours"; otherwise all values are complete.
  -o wide    the same with ids, and no cell is cut.
  -o csv     comma-separated values, written while the list arrives.
  -o json    a record is one object; a list is {"apiVersion","kind","items"}.
  -o jsonl   one line per record, written while the list arrives, with constant memory.
  -o yaml    the same as json.
  -o name    the names only, or the ids of records without names.
  -o jwt     the enrollment JWT only, as in "identity create laptop -o jwt".

--columns name,createdAt selects the columns of tables and CSV, by the names of the API; spelling and case are free.
--query EXPRESSION prints only what a JMESPath expression selects of the JSON: --query 'items[?isAdmin].name'. Texts are printed
one per line, other values as JSON.

Spreadsheets take a cell that begins with =, +, - or @ for a formula, and names can be chosen by others: -o csv puts a quote in
front of such text. --no-csv-guard leaves it as it is, for programs.

Future versions only add members to JSON. With json, jsonl and yaml, an error is one JSON object on stderr with the members
code, message, field, hint and requestId; members that do not apply are omitted.

Lists are complete unless --limit is set; a message on stderr states if a list was truncated.

Colors are used only on a terminal, and not if NO_COLOR is set. Without a terminal there are no prompts: each prompt has an
equivalent flag, and --yes confirms destructive changes.`

const environment = `Environment variables: how a machine without profiles, such as one of CI, names its controller.

  CONTROLLER_URL             URL of the controller
  CONTROLLER_TOKEN           token that "token create" printed, or of an API session, as a sign-in at the API returns it
  CONTROLLER_IDENTITY_FILE   identity file: each command signs in with its certificate, and ends the session
  CONTROLLER_ROOT_FILE       file with the root certificate of the controller, as PEM

Valid are
  an identity file           with the controller and the root of the file, unless the other two variables name others
  a token and a URL          and a root, unless a profile of that controller pins it
  a URL and a root           for what is public, such as "version"
  a URL alone                chooses the profile of that controller

Flags come first: --profile and --offline, and --controller if it names another controller than the variables. The variables come
before the current profile. CONTROLLER_PROFILE chooses a profile, and does not go together with a token or an identity file.
"login" and "profile" work on profiles only.

  CONTROLLER_DATA_DIR        data directory of offline commands and of "serve"
  NO_COLOR                   no colors on a terminal

Other variables that begin with CONTROLLER_ are settings of "serve", such as CONTROLLER_SESSION_TIMEOUT.`

const exitCodes = () =>
  [
    'Exit codes: the same for all commands.',
    '',
    ...exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`),
    '',
    'If the reader closes the pipe early, as in "| head", the exit code is 0.',
  ].join('\n')

/** The pages, by the NAME of `controller help NAME`. */
export const helpPages: Readonly<Record<string, HelpPage>> = {
  'exit-codes': { summary: 'The exit codes of all commands.', text: exitCodes },
  filters: { summary: 'The query language that filters and sorts lists.', text: () => filters },
  roles: { summary: 'How policies select records: #attribute, @name and #all.', text: () => roles },
  environment: {
    summary: 'The environment variables that name a controller and a credential.',
    text: () => environment,
  },
  output: { summary: 'The output formats, and the use of stdout and stderr.', text: () => output },
}
