// The doctor, for administrators.
import { listOf, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

const check = { ...text, description: 'The name of the check that found it.' }
const subject = { ...text, description: 'What it concerns: a record by its name, a file, a setting.' }

const reportProperties = {
  checks: listOf(
    requiredObject({
      name: text,
      summary: { ...text, description: 'What is the case if the check passes.' },
      outcome: {
        ...text,
        enum: ['passed', 'failed', 'unknown'],
        description: 'unknown: nothing shows it, such as routers while no controller runs.',
      },
    }),
  ),
  diagnoses: listOf(
    requiredObject({
      check,
      subject,
      message: text,
      remedy: { ...text, description: 'The command that helps, or what to do.' },
    }),
  ),
}

const COMMON = { apis: ['management'], topic: 'doctor', isOwn: true } as const

export const doctorOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'diagnose',
    method: 'GET',
    path: '/controller/doctor',
    summary: 'Shows what is wrong with the controller or the network, or soon will be, and what helps.',
    access: { permission: 'doctor.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: requiredObject(reportProperties) },
    // Its checks are bounded, but on a large network they take longer than other reads.
    hasNoTimeout: true,
    run: async ({ controller, context }) => dataResponse(await controller.doctor.diagnose(context)),
  }),
  defineOperation({
    ...COMMON,
    id: 'fixDiagnoses',
    method: 'POST',
    path: '/controller/doctor/fix',
    summary: 'Takes the rights of other accounts off the files of the data directory, and shows what is still wrong.',
    access: { permission: 'doctor.update', grantedTo: 'administrator' },
    returns: {
      kind: 'data',
      schema: requiredObject({ fixes: listOf(requiredObject({ check, subject, message: text })), ...reportProperties }),
    },
    hasNoTimeout: true,
    async run({ controller: { doctor, log }, context }) {
      const fixes = doctor.fix()
      for (const fix of fixes) log.warn(fix, 'the doctor fixed something')
      return dataResponse({ fixes, ...(await doctor.diagnose(context)) })
    },
  }),
]
