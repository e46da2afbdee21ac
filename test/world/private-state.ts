// Describes the private fields of an object, so that a test can tell whether two ways led to the same state.
import { Session } from 'node:inspector'
import { inspect } from 'node:util'

const MAX_DEPTH = 6

interface RemoteObject {
  readonly objectId?: string
  readonly value?: unknown
}

interface Shared {
  stateSubject?: unknown
  stateValue?: unknown
}

/** Describes the containers among the private fields of an object; collaborators, which have classes of their own, are left out. */
export function describePrivateState(subject: object): string {
  const session = new Session()
  session.connect()
  try {
    return inspect(readPrivateFields(session, subject), {
      depth: MAX_DEPTH,
      sorted: true,
      maxArrayLength: null,
      maxStringLength: null,
      breakLength: 200,
    })
  } finally {
    session.disconnect()
  }
}

function readPrivateFields(session: Session, subject: object): Record<string, unknown> {
  const shared = globalThis as Shared
  shared.stateSubject = subject
  try {
    const { result } = call<{ result: RemoteObject }>(session, 'Runtime.evaluate', {
      expression: 'globalThis.stateSubject',
    })
    const { privateProperties = [] } = call<{ privateProperties?: { name: string; value?: RemoteObject }[] }>(
      session,
      'Runtime.getProperties',
      { objectId: result.objectId, ownProperties: true },
    )
    const fields: Record<string, unknown> = {}
    for (const { name, value } of privateProperties) {
      // Listeners are no part of the state.
      if (value?.objectId === undefined || name === '#listeners') continue
      call(session, 'Runtime.callFunctionOn', {
        objectId: value.objectId,
        functionDeclaration: 'function () { globalThis.stateValue = this }',
      })
      if (isContainer(shared.stateValue)) fields[name] = shared.stateValue
    }
    return fields
  } finally {
    delete shared.stateSubject
    delete shared.stateValue
  }
}

function isContainer(value: unknown): boolean {
  if (Array.isArray(value) || value instanceof Map || value instanceof Set) return true
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/** The inspector of the own process calls back before it returns. */
function call<T>(session: Session, method: string, parameters: object): T {
  let outcome: { readonly error: Error | null; readonly result: unknown } | undefined
  session.post(method, parameters, (error, result) => {
    outcome = { error, result }
  })
  if (!outcome || outcome.error) throw outcome?.error ?? new Error(`the inspector has not returned from ${method}`)
  return outcome.result as T
}
