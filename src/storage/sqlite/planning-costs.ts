// The costs of tests and searches in SQLite, as measured: lists are planned by them.
import type { PlanningCosts } from '../sql-dialect.ts'

export const sqlitePlanningCosts: PlanningCosts = {
  // In comparisons of two numbers: about 50 ns each, measured on 100,000 records.
  ofTest: {
    comparison: 1,
    contains: 2,
    // Calls back into JavaScript, because SQLite knows the upper case of ASCII letters only.
    icontains: 10,
    tag: 8,
    set: 8,
    guard: 4,
    matched: 200,
  },
  ofOrder: 5,
  // No client sends a thousand comparisons of ids or names, or a hundred searches in text.
  maxOfTests: 4_000,
  // Some milliseconds.
  maxUnguarded: 50_000,
  // Up to 2.4 times the square root of all records it is cheaper to sort those that pass. A thousand among 100,000 are counted in
  // 0.4 ms instead of 21 if the search starts from the table of the set.
  isSelective: (members, records, hint) =>
    hint === 'all' ? members < records / 2 : members < 2.4 * Math.sqrt(records),
}
