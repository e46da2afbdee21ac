// What the doctor reports: something that is wrong, or soon will be, and what helps.

export interface Diagnosis {
  /** The check that found it: one word for programs. */
  readonly check: string
  /** What it concerns: a record by its name, a file, a setting. */
  readonly subject: string
  /** One sentence. */
  readonly message: string
  /** The command that helps, or what to do if no command does. */
  readonly remedy: string
}

/** The number of diagnoses of one check: more have the same cause, as a rule. */
export const MAX_DIAGNOSES_PER_CHECK = 20

/** A word as shells read it. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
