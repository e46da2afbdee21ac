// What the build needs of the command line to write the manifest and the reference.
export { referenceText } from './help/reference.ts'
export { topics } from './topics.ts'
