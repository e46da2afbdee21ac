// What the build needs of the command line to write the manifest and the reference.
export { renderReference } from './help/reference.ts'
export { listTopics } from './topics.ts'
