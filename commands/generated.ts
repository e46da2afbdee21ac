// The exports with which the build writes the manifest and the reference.
export { renderReference } from './help/reference.ts'
export { listTopics } from './topics.ts'
