// The exports with which the build writes the manifest and the reference.

export { listTopics } from '../framework/topics.ts'
export { renderCommandReference } from './reference.ts'
