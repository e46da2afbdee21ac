// Explains which operations an identity may call, and by which of its permissions.
import { findRights, Rights } from '../../../src/definitions/permissions/rights.ts'
import { identities } from '../../../src/definitions/resources/identities.ts'
import { flag, listOf, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import { get } from '../../../src/storage/entities/entities.ts'
import { findOperationExtent } from '../../api/admission.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

const explanation = {
  ...requiredObject({
    operation: text,
    request: { ...text, description: 'Its method and path.' },
    needs: { ...text, description: 'The permission that it states; empty if every signed-in identity may call it.' },
    isAllowed: flag,
    isLimited: {
      ...flag,
      description: 'Whether it may be called for some records only: those that the identity owns.',
    },
    grantedBy: {
      ...listOf(text),
      description: 'The permissions of the identity that allow it; administrator for all.',
    },
  }),
}

/** @param listOperations the operations that can be asked about; called when one is, because this is one of them */
export function makePermissionQuestions(listOperations: () => readonly AnyOperation[]): readonly AnyOperation[] {
  return [
    defineOperation({
      id: 'explainPermission',
      apis: ['management'],
      topic: 'permission',
      isOwn: true,
      method: 'GET',
      path: '/controller/permission/explain/:identityId/:operation',
      summary:
        'Explains whether an identity may call an operation of the management API, and which permission allows it.',
      access: { permission: `${identities.name}.read`, grantedTo: 'administrator' },
      returns: { kind: 'data', schema: explanation },
      async run({ context, params: { identityId = '', operation: operationId = '' } }) {
        const identity = await get(context, identities, identityId)
        const operation = listOperations().find(({ id, apis }) => id === operationId && apis.includes('management'))
        if (!operation) throw notFoundError('operation', operationId)
        const extent = findOperationExtent(operation, findRights(identity))
        return dataResponse({
          operation: operation.id,
          request: `${operation.method} ${operation.path}`,
          needs: isForHolders(operation) ? operation.access.permission : '',
          isAllowed: extent !== undefined,
          isLimited: extent !== undefined && extent !== 'all',
          grantedBy: isForHolders(operation) ? listGranting(operation, identity) : [],
        })
      },
    }),
  ]
}

function isForHolders(
  operation: AnyOperation,
): operation is AnyOperation & { access: { grantedTo: 'administrator'; permission: string } } {
  return 'permission' in operation.access && operation.access.grantedTo === 'administrator'
}

function listGranting(
  operation: AnyOperation,
  { isAdmin, permissions }: { readonly isAdmin: boolean; readonly permissions: readonly string[] },
): readonly string[] {
  if (isAdmin) return ['administrator']
  return permissions.filter((word) => findOperationExtent(operation, Rights.fromWords([word])) !== undefined)
}
