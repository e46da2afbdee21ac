// The doctor, for administrators.
import { listOf, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { dataResponse } from '../../responses/responses.ts'
import { type AnyOperation, defineOperation } from '../operation.ts'

const diagnosisSchema = requiredObject({
  check: { ...text, description: 'The check that found it.' },
  subject: { ...text, description: 'What it concerns: a record by its name, a file, a setting.' },
  message: text,
  remedy: { ...text, description: 'The command that helps, or what to do.' },
})

export const doctorOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'diagnose',
    apis: ['management'],
    topic: 'doctor',
    method: 'GET',
    path: '/controller/doctor',
    isOwn: true,
    summary: 'Shows what is wrong with the controller or the network, or soon will be, and what helps.',
    access: { permission: 'doctor.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: listOf(diagnosisSchema) },
    // Its checks are bounded, but on a large network they take longer than other reads.
    hasNoTimeout: true,
    run: async ({ controller, context }) => dataResponse(await controller.doctor.diagnose(context)),
  }),
]
