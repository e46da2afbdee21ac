// The rows that a commit changed, as plain JSON: images instead of statements, so that neither times, generated keys nor planners
// can make the rows of two processes differ.

/** The columns of a row, or some of them. */
export type RowValues = Readonly<Record<string, string | number | null>>

/** A change of one row. Applied in their order to the rows before the commit, the changes lead to those after it. */
export type RowChange =
  | { readonly operation: 'insert'; readonly table: string; readonly row: RowValues }
  /** `row` holds the columns that changed. */
  | { readonly operation: 'update'; readonly table: string; readonly key: RowValues; readonly row: RowValues }
  | { readonly operation: 'delete'; readonly table: string; readonly key: RowValues }
