// Inspections: what the controller tells of itself, in the form that tools of operators read.
import { f } from '../../../src/definitions/schema/fields.ts'
import { flag, listOf, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { invalidError, toPrintable } from '../../../src/foundation/errors.ts'
import { suggestNearest } from '../../../src/foundation/nearest.ts'
import { type AnyOperation, type Call, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { rawResponse } from '../../api/responses.ts'
import { INSPECTED_VALUES } from './inspected-values.ts'
import { LinearPattern, PatternError } from './linear-pattern.ts'
import { FABRIC } from './view-operations.ts'

interface InspectionRequest {
  readonly appRegex: string
  readonly requestedValues: readonly string[]
}

interface InspectionResult {
  readonly success: boolean
  readonly errors: readonly string[]
  readonly values: readonly { readonly appId: string; readonly name: string; readonly value: unknown }[]
}

const MAX_VALUES = 20

const resultShape = requiredObject({
  success: flag,
  errors: listOf(text),
  values: listOf(requiredObject({ appId: text, name: text, value: { description: 'Any JSON, by its name.' } })),
})

export const inspectionOperations: readonly AnyOperation[] = [
  defineOperation<InspectionRequest>({
    ...FABRIC,
    id: 'inspect',
    needsRouters: true,
    topic: 'inspections',
    method: 'POST',
    path: '/inspections',
    summary: `Shows what the controller holds in memory: ${Object.keys(INSPECTED_VALUES).join(', ')}.`,
    access: { permission: 'controller.inspect', grantedTo: 'administrator' },
    body: readFieldsBody({
      appRegex: f.text({
        required: true,
        summary: 'A regular expression; nothing is shown if the id of the controller does not match.',
      }),
      requestedValues: f.strings({ required: true, summary: 'The names of what is to be shown.' }),
    }),
    returns: { kind: 'raw', contentType: 'application/json', schema: resultShape },
    run: async (call) => rawResponse('application/json', `${JSON.stringify(await inspect(call))}\n`),
  }),
]

async function inspect({ controller, context, body }: Call<InspectionRequest>): Promise<InspectionResult> {
  const { appRegex, requestedValues } = body
  if (requestedValues.length > MAX_VALUES)
    throw invalidError('requestedValues', `must have at most ${MAX_VALUES} entries`)
  const appId = controller.membership.ownId ?? 'controller'
  const failures: string[] = []
  const values: InspectionResult['values'][number][] = []
  for (const name of isMatch(appRegex, appId, failures) ? requestedValues : []) {
    const lowerCaseName = name.toLowerCase()
    const show = Object.hasOwn(INSPECTED_VALUES, lowerCaseName) ? INSPECTED_VALUES[lowerCaseName] : undefined
    if (show) values.push({ appId, name, value: await show(controller, context) })
    else
      failures.push(
        `${appId}: there is no value ${toPrintable(name)}${suggestNearest(name.slice(0, 50), Object.keys(INSPECTED_VALUES))}`,
      )
  }
  return { success: failures.length === 0, errors: failures, values }
}

/** Whether the expression of a client matches the id; an error in it goes to `failures`, which tools print. */
function isMatch(source: string, appId: string, failures: string[]): boolean {
  try {
    return new LinearPattern(source).test(appId)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    failures.push(`${appId}: the expression ${error.message}`)
    return false
  }
}
