// The role attributes that are in use, by resource, for administrators who write policies.
import type { AnyResource } from '../../../src/definitions/resources/define.ts'
import { edgeRouters } from '../../../src/definitions/resources/edge-routers.ts'
import { identities } from '../../../src/definitions/resources/identities.ts'
import { postureChecks } from '../../../src/definitions/resources/posture-checks.ts'
import { services } from '../../../src/definitions/resources/services.ts'
import { planList } from '../../../src/storage/lists/list-plan.ts'
import { listValues, valueSource } from '../../../src/storage/lists/value-lists.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { listParameters, listQuery } from '../../api/query.ts'
import { respondWithListing } from '../../responses/lists.ts'
import { toPascalCase } from '../resource-operations.ts'

const attribute = { type: 'string', 'x-example-filter': 'id contains "st" sort by id' }

const attributed: readonly AnyResource[] = [edgeRouters, identities, postureChecks, services]

export const roleAttributeOperations: readonly AnyOperation[] = attributed.map((resource) =>
  defineOperation({
    id: `list${toPascalCase(resource.name)}RoleAttributes`,
    apis: ['management'],
    topic: 'role-attributes',
    method: 'GET',
    path: `/${resource.name}-role-attributes`,
    summary: `Lists the role attributes that ${resource.plural.replaceAll('-', ' ')} have.`,
    access: { permission: `${resource.name}.read`, grantedTo: 'administrator' },
    query: listQuery,
    returns: { kind: 'data', schema: { type: 'array', items: attribute } },
    // Without a limit, all of them are listed, as clients expect.
    run: (call) =>
      respondWithListing(call, planList(listParameters(call.query), 'none'), {
        filterableFields: valueSource.filterableFields,
        fetchPage: (plan) => listValues(call.controller.store, call.context, resource, 'roleAttributes', plan),
        render: (values) => values.map((value) => JSON.stringify(value)),
      }),
  }),
)
