// Names for records of tests.
let sequence = 0

/** A name that no other record of this test file has. */
export const newName = (what: string) => `${what} ${++sequence}`
