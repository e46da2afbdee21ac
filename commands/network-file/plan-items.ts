// The items of a plan, as the controller sends them, and as people read them.
import { loadApiDescription } from '../api/description.ts'
import { type Impact, renderImpact } from '../api/impact.ts'
import { toNoun } from '../names.ts'
import { escapeLines } from '../output/text.ts'

interface Counts {
  readonly identities: number
  readonly services: number
  readonly pairs: number
}

/** The last item. */
export interface PlanSummary {
  readonly kind: 'summary'
  readonly digest: string
  readonly creates: number
  readonly changes: number
  readonly deletes: number
  readonly gains: Counts
  readonly loses: Counts
  readonly unreachable: Counts
  readonly sessions: number
  readonly isComplete: boolean
}

type PlanItem =
  | {
      readonly kind: 'create' | 'change' | 'delete'
      readonly resource: string
      readonly name: string
      readonly members?: readonly { readonly name: string; readonly before?: unknown; readonly after: unknown }[]
    }
  | { readonly kind: 'retain'; readonly resource: string; readonly name: string; readonly reason: string }
  | {
      readonly kind: 'gain' | 'loss' | 'unreachable'
      readonly identity: string
      readonly service: string
      readonly type: 'Dial' | 'Bind'
    }
  | { readonly kind: 'gate'; readonly name: string; readonly identities: number; readonly remainingChecks: number }
  | PlanSummary

const MARKS = { create: '+', change: '~', delete: '-' } as const
const EFFECTS = { gain: 'gains', loss: 'loses', unreachable: 'has no edge router left for' } as const

/** Writes a plan while it arrives, for people. */
export class PlanText {
  #summary: PlanSummary | undefined
  readonly #examples = { gain: new Set<string>(), loss: new Set<string>(), unreachable: new Set<string>() }
  readonly #gates: Impact['gates'][number][] = []

  /** The last item; undefined until it has arrived. */
  get summary(): PlanSummary | undefined {
    return this.#summary
  }

  /** The lines of one item. */
  render(value: unknown): string {
    const item = value as PlanItem
    switch (item.kind) {
      case 'create':
      case 'change':
      case 'delete': {
        const members = item.kind === 'change' ? (item.members ?? []) : []
        const lines = members.map(({ name, before, after }) => `    ${name}: ${toText(before)} → ${toText(after)}`)
        return toLines([`${MARKS[item.kind]} ${item.kind} ${toRecordText(item)}`, ...lines])
      }
      case 'retain':
        return toLines([`  retain ${toRecordText(item)}: ${item.reason}`])
      case 'gain':
      case 'loss':
      case 'unreachable': {
        const { identity, service, type } = item
        this.#examples[item.kind].add(identity)
        const right = item.kind === 'unreachable' ? service : `${type === 'Dial' ? 'dialing' : 'hosting'} ${service}`
        return toLines([`  ${identity} ${EFFECTS[item.kind]} ${right}`])
      }
      case 'gate': {
        const { name, identities, remainingChecks } = item
        this.#gates.push({ policy: { name }, identities, remainingChecks })
        return ''
      }
      case 'summary':
        this.#summary = item
        return toLines(['', ...this.#renderSummary(item)])
    }
  }

  #renderSummary({
    creates,
    changes,
    deletes,
    gains,
    loses,
    unreachable,
    sessions,
    isComplete,
  }: PlanSummary): string[] {
    if (creates + changes + deletes === 0) return ['Nothing would change.']
    const withExamples = (counts: Counts, kind: keyof typeof EFFECTS) => ({
      ...counts,
      examples: [...this.#examples[kind]].map((name) => ({ identity: { name } })),
    })
    const effects = {
      gains: withExamples(gains, 'gain'),
      loses: withExamples(loses, 'loss'),
      unreachable: withExamples(unreachable, 'unreachable'),
    }
    return [
      `${creates} to create, ${changes} to change, ${deletes} to delete.`,
      ...renderImpact({ ...effects, sessions, isComplete, gates: this.#gates }),
    ]
  }
}

/** Whether applying the plan changes anything. */
export function hasChanges({ creates, changes, deletes }: PlanSummary): boolean {
  return creates + changes + deletes > 0
}

/** `service web` */
function toRecordText({ resource, name }: { readonly resource: string; readonly name: string }): string {
  return `${toNoun(loadApiDescription().resources[resource]?.name ?? resource)} ${name}`
}

const MAX_SHOWN_LENGTH = 120

function toText(value: unknown): string {
  const text = JSON.stringify(value ?? null)
  return text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text
}

function toLines(lines: readonly string[]): string {
  return `${escapeLines(lines.join('\n'))}\n`
}
