// The items of a plan, as the controller sends them, and as people read them.

import type { PlanItem, PlanSummary } from '../../server/operations/management-api/plan-items.ts'
import { type ReportedImpact, renderImpact } from '../api/impact.ts'
import { describeUnmatchedRole } from '../api/unmatched-roles.ts'
import { toNoun } from '../client/names.ts'
import { loadApiDescription } from '../foundation/description.ts'
import { escapeControls } from '../terminal/text.ts'

const MARKS = { create: '+', change: '~', delete: '-', clear: '~' } as const
const EFFECTS = { gain: 'gains', loss: 'loses', unreachable: 'has no edge router left for' } as const

/** The effects of the summary: the items that name their rights, and how the rest of these is called. */
const EFFECT_NOUNS = {
  loses: 'lost rights',
  blockedLosses: 'lost rights that posture blocks',
  gains: 'gained rights',
  blockedGains: 'gained rights that posture blocks',
  unreachable: 'rights without an edge router',
} as const

type EffectName = keyof typeof EFFECT_NOUNS

interface Example {
  readonly identity: { readonly name: string }
  readonly blockedBy: readonly { readonly name: string }[]
}

/** Writes a plan for people: its summary, then each item. */
export class PlanText {
  readonly #lines: string[] = []
  #summary: PlanSummary | undefined
  readonly #examples: Readonly<Record<EffectName, Example[]>> = {
    ...{ loses: [], blockedLosses: [], gains: [], blockedGains: [], unreachable: [] },
  }
  readonly #gates: ReportedImpact['gates'][number][] = []

  /** The last item; undefined until it has arrived. */
  get summary(): PlanSummary | undefined {
    return this.#summary
  }

  /** All of it, once the summary has arrived. */
  render(): string {
    const summary = this.#summary
    if (!summary) return ''
    const details = [...this.#lines, ...this.#renderRest(summary)]
    return toLines([...this.#renderSummary(summary), ...(details.length > 0 ? ['', ...details] : [])])
  }

  /** Takes one item. */
  add(value: unknown): void {
    const item = value as PlanItem
    if (item.kind === 'summary') this.#summary = item
    else this.#lines.push(...this.#renderItem(item))
  }

  #renderItem(item: Exclude<PlanItem, PlanSummary>): string[] {
    switch (item.kind) {
      case 'create':
      case 'change':
      case 'delete':
      case 'clear': {
        const { kind, resource, members = [] } = item
        const isChange = kind === 'change' || kind === 'clear'
        const shownMembers = members.filter(({ name, isDefault }) => isChange || (name !== 'name' && !isDefault))
        const lines = shownMembers.map(({ name, before, after }) =>
          isChange ? `    ${name}: ${toItemText(before)} → ${toItemText(after)}` : `    ${name}: ${toItemText(after)}`,
        )
        const isPromoted = members.some(({ name, after }) => name === 'isAdmin' && after === true)
        const remarks = [
          ...(isPromoted && resource === 'identities' ? [', which becomes an administrator'] : []),
          ...(kind === 'delete' && resource === 'identities' ? [', which loses its credentials'] : []),
          ...(kind === 'clear' ? [', which names what is deleted'] : []),
        ]
        return [`${MARKS[kind]} ${isChange ? 'change' : kind} ${toRecordText(item)}${remarks.join('')}`, ...lines]
      }
      case 'retain':
        return [`  retain ${toRecordText(item)}: ${item.reason}`]
      case 'unlisted':
        return [`  not in the file: ${toRecordText(item)}`]
      case 'gain':
      case 'loss':
      case 'unreachable': {
        const { kind, identity, service, type, blockedBy } = item
        const blockingChecks = (blockedBy ?? []).map((name) => ({ name }))
        this.#examples[toEffectName(item)].push({ identity: { name: identity }, blockedBy: blockingChecks })
        const right = kind === 'unreachable' ? service : `${type === 'Dial' ? 'dialing' : 'hosting'} ${service}`
        return [`  ${identity} ${EFFECTS[kind]} ${right}${toCondition(item)}`]
      }
      case 'gate': {
        const { name, identities, remainingChecks } = item
        this.#gates.push({ policy: { name }, identities, remainingChecks })
        return []
      }
      case 'unmatched': {
        const { resource, role, near } = item
        return [`  ${describeUnmatchedRole(toSectionNoun(resource), role, near)}`]
      }
    }
  }

  #renderSummary(summary: PlanSummary): string[] {
    const { resources, sessions, isComplete } = summary
    if (!hasChanges(summary)) return ['Nothing would change.', ...describeUnlisted(resources)]
    const withExamples = (name: EffectName) => ({ ...summary[name], examples: this.#examples[name] })
    const impact: ReportedImpact = {
      loses: withExamples('loses'),
      gains: withExamples('gains'),
      blockedLosses: withExamples('blockedLosses'),
      blockedGains: withExamples('blockedGains'),
      unreachable: withExamples('unreachable'),
      sessions,
      isComplete,
      gates: this.#gates,
    }
    return [
      `${countChanges(summary)}.`,
      ...resources.filter(hasChanges).map((counts) => `  ${toSectionNouns(counts.resource)}: ${countChanges(counts)}`),
      ...describeUnlisted(resources),
      ...renderImpact(impact),
    ]
  }

  /** How many rights of each effect the items before did not name. */
  #renderRest(summary: PlanSummary): string[] {
    return (Object.keys(EFFECT_NOUNS) as EffectName[]).flatMap((name) => {
      const rest = summary[name].pairs - this.#examples[name].length
      return rest > 0 ? `  … and ${rest} more ${EFFECT_NOUNS[name]}` : []
    })
  }
}

type RightItem = Extract<PlanItem, { readonly kind: 'gain' | 'loss' | 'unreachable' }>

function toEffectName({ kind, blockedBy }: RightItem): EffectName {
  if (kind === 'unreachable') return 'unreachable'
  if (kind === 'gain') return blockedBy ? 'blockedGains' : 'gains'
  return blockedBy ? 'blockedLosses' : 'loses'
}

/** The posture checks that block a right at the moment, as text. */
function toCondition({ kind, blockedBy }: RightItem): string {
  if (!blockedBy) return ''
  const names = blockedBy.join(', ')
  return kind === 'gain' ? `, once it passes ${names}` : `, which ${names} blocks at the moment`
}

type ChangeCounts = Pick<PlanSummary, 'creates' | 'changes' | 'deletes'>

/** Whether applying the plan changes anything. */
export function hasChanges({ creates, changes, deletes }: ChangeCounts): boolean {
  return creates + changes + deletes > 0
}

/** `2 to create, 1 to change, 0 to delete` */
export function countChanges({ creates, changes, deletes }: ChangeCounts): string {
  return `${creates} to create, ${changes} to change, ${deletes} to delete`
}

/** How many records of the network the files do not name: of resources that they have a section for, and of others. */
function describeUnlisted(resources: readonly PlanSummary['resources'][number][]): string[] {
  const list = (isOfSection: boolean) =>
    resources
      .filter(({ unlisted, hasSection }) => unlisted > 0 && hasSection === isOfSection)
      .map(({ resource, unlisted }) => `${toSectionNouns(resource)} (${unlisted})`)
      .join(', ')
  const [ofSections, ofOthers] = [list(true), list(false)]
  return [
    ...(ofSections ? [`Not in the file, and left as they are: ${ofSections}. --show-unlisted names them.`] : []),
    ...(ofOthers ? [`Without a section in the file, and left as they are: ${ofOthers}.`] : []),
  ]
}

function toSectionNouns(plural: string): string {
  return plural.replaceAll('-', ' ')
}

/** `service web` */
function toRecordText({ resource, name }: { readonly resource: string; readonly name: string }): string {
  return `${toSectionNoun(resource)} ${name}`
}

function toSectionNoun(plural: string): string {
  return toNoun(loadApiDescription().resources[plural]?.name ?? plural)
}

const MAX_SHOWN_LENGTH = 120

function toItemText(value: unknown): string {
  const text = JSON.stringify(value ?? null)
  return text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text
}

/** Each line is escaped by itself, so that a name with a line break cannot add lines to a plan that is to be confirmed. */
function toLines(lines: readonly string[]): string {
  return `${lines.map(escapeControls).join('\n')}\n`
}
