// A plan as a file: what it was made of, and the digest by which the controller applies nothing else.
import { readFileSync } from 'node:fs'
import { findFileTarget, replaceFile } from '../client/reserved-file.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { describeFileError } from '../foundation/file-errors.ts'
import { describeMistake, type Mistake, type ReadSection, type SectionSource, toLocatedError } from './sections.ts'

const KIND = 'controller-plan'
const VERSION = 1

/** The changes that a saved plan applies, and nothing else. */
interface PlanContent {
  readonly isPruning: boolean
  readonly digest: string
  readonly sections: readonly ReadSection[]
}

export class SavedPlan implements SectionSource, PlanContent {
  readonly isPruning: boolean
  readonly digest: string
  readonly sections: readonly ReadSection[]
  readonly label: string

  private constructor(path: string, { isPruning, digest, sections }: PlanContent) {
    this.label = path
    this.isPruning = isPruning
    this.digest = digest
    this.sections = sections
  }

  /** @throws CommandError with exit code 2 if the file is not a plan that this program saved */
  static read(path: string): SavedPlan {
    const content = parsePlan(readText(path))
    if (content) return new SavedPlan(path, content)
    throw new CommandError(EXIT.usage, 'INVALID_PLAN', `${path} is not a plan that this program can apply`, {
      hint: 'controller plan -f FILE --out PLAN',
    })
  }

  /** Writes a plan, in place of an earlier one. @throws CommandError if the file cannot be written */
  static write(path: string, { isPruning, digest, sections }: PlanContent): void {
    const text = JSON.stringify({ kind: KIND, version: VERSION, isPruning, digest, sections })
    replaceFile(findFileTarget(path), `${text}\n`)
  }

  locate(error: unknown): unknown {
    return toLocatedError(error, (mistakes) => mistakes.flatMap((mistake) => this.describeMistake(mistake) ?? []))
  }

  describeMistake(mistake: Mistake): string | undefined {
    const text = describeMistake(this.sections, mistake)
    return text === undefined ? undefined : `${this.label}: ${text}`
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const message = `${path} cannot be read: ${describeFileError(error, path)}`
    throw new CommandError(EXIT.usage, 'INVALID_PLAN', message)
  }
}

function parsePlan(text: string): PlanContent | undefined {
  try {
    const plan = JSON.parse(text) as Partial<PlanContent> & { kind?: unknown; version?: unknown }
    const isKnown = plan?.kind === KIND && plan.version === VERSION
    const isWhole =
      typeof plan.isPruning === 'boolean' &&
      typeof plan.digest === 'string' &&
      plan.sections?.every(({ resource, records }) => typeof resource === 'string' && Array.isArray(records))
    return isKnown && isWhole ? (plan as PlanContent) : undefined
  } catch {
    return undefined
  }
}
