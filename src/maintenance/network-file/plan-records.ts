// Plans what the records of a network file create and change.
import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { foldVariant } from '../../definitions/model/input.ts'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { getResource } from '../../definitions/resources/index.ts'
import { applyFallbacks, NO_TOLERANCE, readBody } from '../../definitions/schema/bodies.ts'
import { ControllerError, invalidError } from '../../foundation/errors.ts'
import { toTunnelerRecords } from '../../network/routers/router-provisioner.ts'
import { SetMap } from '../../policy/set-map.ts'
import { newEntity } from '../../storage/entities/entities.ts'
import { resolveSubtype, withParent } from '../../storage/entities/subtypes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { FileEntry } from './entries.ts'
import { findExisting } from './existing-records.ts'
import { flattenVariant, toFileRecord } from './file-records.ts'
import { type FileResource, listMembers } from './file-resources.ts'
import { getFileShape } from './file-shapes.ts'
import type { KnownNames } from './known-names.ts'
import { type FileMistakes, getFieldCause } from './mistakes.ts'
import type { ChangeStep, DeleteStep, PlannedValues, PlanStep } from './plan-step.ts'
import { applyValues, describeDifferences, listDifferences } from './record-comparison.ts'
import { loadNames } from './record-names.ts'
import { type TranslateReference, translateReferences } from './references.ts'

type Values = Record<string, unknown>

/** A plan while it is made. */
export interface Planning {
  readonly context: Context
  readonly mistakes: FileMistakes
  readonly names: KnownNames
  readonly steps: PlanStep[]
  /** Ids of the records that the file has, by resource. */
  readonly matchedIds: Map<FileResource, Set<string>>
  /** By id: the place of a reference in the file. */
  readonly referencePaths: Map<string, string>
  /** By name: the identities that come with edge routers of the plan. */
  readonly routerIdentities: Map<string, PlannedValues>
  /** By id: the places of identities in the file. */
  readonly identityPaths: Map<string, string>
  /** The names of records in sections of no resource. */
  readonly unplacedNames: ReadonlySet<string>
}

const PAGE = 200

/** Plans the records of one resource. Those that cannot be as the file wants them are mistakes. */
export async function planRecords(
  planning: Planning,
  fileResource: FileResource,
  entries: readonly FileEntry[],
): Promise<void> {
  const matchedIds = new Set<string>()
  planning.matchedIds.set(fileResource, matchedIds)
  for (let at = 0; at < entries.length; at += PAGE) {
    for (const step of await planPage(planning, fileResource, entries.slice(at, at + PAGE), matchedIds))
      planning.steps.push(step)
    // Other requests get a turn.
    await setImmediate()
  }
}

async function planPage(
  planning: Planning,
  fileResource: FileResource,
  entries: readonly FileEntry[],
  matchedIds: Set<string>,
): Promise<PlanStep[]> {
  const { context, names, routerIdentities } = planning
  const { resource } = fileResource
  const bodies = await toBodies(planning, fileResource, entries)
  const storedRecords = await findExisting(context, fileResource, bodies)
  const existing = entries.map(({ label }, at) => {
    const routerIdentity = resource.plural === identities.plural ? routerIdentities.get(label) : undefined
    return storedRecords[at] ?? routerIdentity
  })
  // New records refer to what the defaults name.
  const defaults = applyFallbacks(resource.fields, {})
  const toStoredName = await loadNames(context, fileResource, [
    ...existing.filter((entity) => entity !== undefined),
    defaults,
  ])
  const toName: TranslateReference = (target, id) => names.findName(id) ?? toStoredName(target, id)
  return entries.flatMap((entry, at) => {
    const [body = {}, before] = [bodies[at], existing[at]]
    const step = collectMistakes(planning, entry, body, (members) =>
      before
        ? planChange(planning, fileResource, entry, members, before, toName)
        : planCreation(planning, fileResource, entry, members, toName),
    )
    const id = before?.id ?? step?.id ?? ''
    matchedIds.add(id)
    if (resource.plural === identities.plural) planning.identityPaths.set(id, entry.path)
    if ('name' in resource.fields) names.add(resource, entry.label, id)
    if (resource.plural === edgeRouters.plural) addRouterIdentity(planning, step)
    return step ?? []
  })
}

/**
 * Plans a record; if a member of it is a mistake, also without that member, so that the other mistakes of the record are
 * reported, too.
 */
function collectMistakes(
  { mistakes }: Planning,
  { path }: FileEntry,
  body: Values,
  plan: (members: Values) => PlanStep | undefined,
): PlanStep | undefined {
  const members = { ...body }
  for (;;) {
    try {
      return plan(members)
    } catch (error) {
      mistakes.add(error)
      const [member = ''] =
        getFieldCause(error)
          ?.field.slice(path.length + 1)
          .split('.') ?? []
      if (!Object.hasOwn(members, member)) return undefined
      delete members[member]
    }
  }
}

// ---- references ------------------------------------------------------------------------------------------------------

/** The records as bodies: with ids in place of names. A name that nothing has is a mistake. */
async function toBodies(
  { names, mistakes, referencePaths, unplacedNames }: Planning,
  fileResource: FileResource,
  entries: readonly FileEntry[],
): Promise<Values[]> {
  const mentions = new SetMap()
  for (const { record } of entries) {
    translateRecord(fileResource, record, () => (target, name) => {
      mentions.add(target, name)
      return name
    })
  }
  for (const [target, ofTarget] of mentions) await names.load(target, ofTarget)
  const missing: { readonly target: string; readonly name: string; readonly place: string }[] = []
  const bodies = entries.map(({ record, path }) =>
    translateRecord(
      fileResource,
      withSigns(fileResource, record, path, mistakes),
      (member) =>
        (target, name, at = '') => {
          const id = names.findId(target, name)
          const place = `${path}.${member}${at}`
          if (id === undefined && !unplacedNames.has(name)) missing.push({ target, name, place })
          else if (id !== undefined && !referencePaths.has(id)) referencePaths.set(id, place)
          return id ?? name
        },
    ),
  )
  for (const { target, name, place } of missing) {
    const near = await names.findNearestNames(target, name)
    const rest = near.length > 0 ? `: did you mean ${near.join(' or ')}?` : ''
    mistakes.add(
      invalidError(place, `names "${name}", but neither the file nor the network has ${target} of that name${rest}`),
    )
  }
  return bodies
}

/** The record with a sign before each role. A role without one is a mistake. */
function withSigns(fileResource: FileResource, record: Readonly<Values>, path: string, mistakes: FileMistakes): Values {
  const signed: Values = { ...record }
  for (const { name, field } of listMembers(fileResource, record.typeId)) {
    const roles = record[name]
    if (!field.kind.roles || !Array.isArray(roles)) continue
    signed[name] = roles.map((role, at) => {
      if (typeof role !== 'string' || /^[#@]/.test(role)) return role
      const reason = `must begin with # (a role) or @ (a name), and not be "${role}": did you mean "#${role}"?`
      mistakes.add(invalidError(`${path}.${name}.${at}`, reason))
      return `#${role}`
    })
  }
  return signed
}

function translateRecord(
  fileResource: FileResource,
  record: Readonly<Values>,
  translateIn: (member: string) => TranslateReference,
): Values {
  const body: Values = { ...record }
  for (const { name, field } of listMembers(fileResource, record.typeId)) {
    if (Object.hasOwn(record, name)) body[name] = translateReferences(field, record[name], translateIn(name))
  }
  return body
}

// ---- creation --------------------------------------------------------------------------------------------------------

function planCreation(
  { context }: Planning,
  fileResource: FileResource,
  { label, path }: FileEntry,
  body: Values,
  toName: TranslateReference,
): PlanStep {
  const values = readValues(fileResource, 'create', withDefaults(fileResource, body), path)
  const after = newEntity(context, fileResource.resource, values as never) as PlannedValues
  const defaults = listDefaultMembers(fileResource, after)
  const members = Object.entries(toFileRecord(fileResource, after, toName)).map(([name, value]) => ({
    name,
    after: value,
    ...(defaults.has(name) ? { isDefault: true as const } : {}),
  }))
  return { action: 'create', fileResource, id: after.id, label, path, after, members }
}

/** The names of the members that have the values which they would have without the file. */
function listDefaultMembers(fileResource: FileResource, after: PlannedValues): ReadonlySet<string> {
  const values = flattenVariant(fileResource, after)
  const members = listMembers(fileResource, after.typeId).filter(({ fieldName, field }) => {
    const { required, commandDefault } = field.options
    const fallback = required ? commandDefault : applyFallbacks({ [fieldName]: field }, {})[fieldName]
    return isDeepStrictEqual(values[fieldName], fallback)
  })
  return new Set(members.map(({ name }) => name))
}

/** The defaults of the command line for required members. */
function withDefaults(fileResource: FileResource, body: Readonly<Values>): Values {
  const complete: Values = { ...body }
  for (const { name, field } of listMembers(fileResource, body.typeId)) {
    const { required, commandDefault } = field.options
    if (required && commandDefault !== undefined && complete[name] === undefined) complete[name] = commandDefault
  }
  return complete
}

/** The values of the fields; of a variant inside `details`. */
function readValues(
  fileResource: FileResource,
  purpose: 'create' | 'patch',
  body: Readonly<Values>,
  path: string,
  storedType?: unknown,
): Values {
  const typeId = storedType ?? body.typeId
  const values = readBody(getFileShape(fileResource, purpose, typeId), body, NO_TOLERANCE, `${path}.`)
  // In a patch of the API null means unchanged for a required member; in the file it means null.
  for (const { name, fieldName, field } of listMembers(fileResource, typeId)) {
    if (body[name] === null && field.options.nullable) values[fieldName] = null
  }
  const { resource } = fileResource
  const variant = String(typeId)
  return resource.variants?.[variant] ? foldVariant(resource, purpose, variant, values) : values
}

// ---- change ----------------------------------------------------------------------------------------------------------

function planChange(
  planning: Planning,
  fileResource: FileResource,
  { label, path }: FileEntry,
  body: Values,
  before: PlannedValues,
  toName: TranslateReference,
): ChangeStep | undefined {
  const { resource, identifiedBy } = fileResource
  const [identifier] = identifiedBy
  const actual = resolveSubtype(getResource(withParent(resource.plural).at(-1) ?? ''), before)
  if (actual !== resource)
    throw invalidError(`${path}.${identifier?.name}`, `is the name of a record of ${actual.plural}`, label)
  const values = readValues(fileResource, 'patch', body, path, before.typeId)
  const after = applyValues(fileResource, before, values)
  const differences = listDifferences(fileResource, before, after)
  if (differences.length === 0) return undefined
  if (before.isSystem === true)
    throw invalidError(`${path}.${identifier?.name}`, 'belongs to the system and cannot be changed', label)
  const fixed = differences.find(({ field }) => field.options.access === 'create')
  if (fixed) {
    const reason = 'cannot change once the record exists: rename the record in the file, or delete it first'
    throw invalidError(`${path}.${fixed.name}`, reason)
  }
  const members = describeDifferences(fileResource, before, after, differences, toName)
  const changedValues = pickChanged(
    values,
    before,
    after,
    differences.map(({ fieldName }) => fieldName),
  )
  const isCreatedByPlan = planning.routerIdentities.get(label) === before
  return {
    action: 'change',
    fileResource,
    id: before.id,
    label,
    path,
    before,
    after,
    values: changedValues,
    members,
    isCreatedByPlan,
  }
}

/** The values without those that are the same. */
function pickChanged(
  values: Values,
  before: PlannedValues,
  after: PlannedValues,
  fieldNames: readonly string[],
): Values {
  const changed = Object.entries(values).filter(([name]) => fieldNames.includes(name) || name === 'details')
  return Object.fromEntries(changed.filter(([name]) => before[name] !== after[name]))
}

// ---- identities of routers -------------------------------------------------------------------------------------------

/** Adds the identity that an edge router gets with a tunneler, so that the rest of the file can refer to it. */
function addRouterIdentity({ context, names, routerIdentities }: Planning, step: PlanStep | undefined): void {
  if (!step || step.action === 'delete' || step.after.isTunnelerEnabled !== true) return
  if (step.action === 'change' && step.before.isTunnelerEnabled === true) return
  const { identity } = toTunnelerRecords({ id: step.id, name: step.label })
  const entity = newEntity(context, identities, identity) as unknown as PlannedValues
  routerIdentities.set(step.label, entity)
  names.add(identities, step.label, step.id)
}

/** Requires that the file names no identity that goes with the tunneler of its edge router. Such an identity is a mistake. */
export function requireRouterIdentities(
  { steps, identityPaths, mistakes }: Planning,
  deletions: readonly DeleteStep[],
): void {
  for (const step of [...steps, ...deletions]) {
    if (step.fileResource.resource.plural !== edgeRouters.plural || step.action === 'create') continue
    if (step.before.isTunnelerEnabled !== true) continue
    const path =
      step.action === 'change' && step.after.isTunnelerEnabled === true ? undefined : identityPaths.get(step.id)
    const reason = `would be deleted with the tunneler of edge router ${step.label}`
    if (path !== undefined) mistakes.add(invalidError(`${path}.name`, reason, step.label))
  }
}

/** The same error at the place of a record in the file. */
export function toFileError(
  error: unknown,
  { path, fileResource }: Pick<ChangeStep, 'path' | 'fileResource'>,
): unknown {
  if (!(error instanceof ControllerError) || !error.publicCause || !('field' in error.publicCause)) return error
  const { field, reason, value } = error.publicCause
  const [head = '', ...rest] = field.split('.')
  const member = fileResource.members.find(({ fieldName, bodyMember }) => head === fieldName || head === bodyMember)
  const place = [path, member?.name ?? head, ...rest].join('.')
  return error.status < 500 ? invalidError(place, reason, value) : error
}
