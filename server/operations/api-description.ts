// Describes the management API as data, read off the registries; the build writes it down for the command line.
import type { ApiDescription, OperationDescription, ResourceDescription } from '../../src/client/api-description.ts'
import { toCollectionPath } from '../../src/definitions/model/links.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import type { AnyOperation } from '../api/operation.ts'
import { operations } from './operations.ts'

export function describeApi(): ApiDescription {
  return {
    resources: Object.fromEntries(resources.map((resource) => [resource.plural, describeResource(resource)])),
    operations: operations.filter(({ apis }) => apis.includes('management')).map(describeOperation),
  }
}

function describeOperation(operation: AnyOperation): OperationDescription {
  const { id, method, path, summary, topic, access, query, body, returns, canDryRun } = operation
  return {
    id,
    method,
    path,
    summary,
    topic,
    returns,
    ...(query ? { query } : {}),
    ...(body ? { body: { schema: body.schema, isRequired: body.isRequired, contentTypes: body.contentTypes } } : {}),
    ...('public' in access ? { isPublic: true } : {}),
    ...(canDryRun ? { canDryRun } : {}),
  }
}

/** Members by which a record hands out enrollment JWTs. */
const JWT_MEMBERS = ['jwt', 'enrollmentJwt', 'enrollment']

function describeResource(resource: AnyResource): ResourceDescription {
  const { name, plural, alternateName, summary, fields, columns, credentials, example, derived, computed, builtIn } =
    resource
  const ownerSymbol = fields.identityId?.options.filter
  const members = new Set([...Object.keys(fields), ...Object.keys(derived), ...Object.keys(computed)])
  return {
    name,
    plural,
    path: toCollectionPath(resource),
    ...(alternateName ? { otherName: alternateName } : {}),
    summary,
    isNamed: 'name' in fields,
    ...(!('name' in fields) && typeof ownerSymbol === 'string' ? { ownerSymbol } : {}),
    columns: columns.map((column) => fields[column]?.kind.reference?.as ?? column),
    credentials,
    carriesJwt: JWT_MEMBERS.some((member) => members.has(member)),
    exampleName: String(example.create.name ?? builtIn[0]?.name ?? 'NAME'),
    example,
  }
}
