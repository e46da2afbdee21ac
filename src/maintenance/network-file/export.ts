// Exports everything that administrators configured, by names and in a stable order, some records at a time.

import type { AnyRow } from '../../definitions/resources/define.ts'
import { entityFromRow } from '../../storage/entities/rows.ts'
import { resolveSubtype, selectRows } from '../../storage/entities/subtypes.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { toFileRecord } from './file-records.ts'
import { type FileResource, fileResources } from './file-resources.ts'
import { InitialValues } from './initial-values.ts'
import { loadNames } from './record-names.ts'

export type FileRecord = Readonly<Record<string, unknown>>

/** Some records of a resource, as the network file shows them. */
export interface NetworkSection {
  /** The plural name of the resource. */
  readonly resource: string
  readonly records: readonly FileRecord[]
}

const PAGE = 200

/**
 * The records of all resources of the file: each resource in one or several sections, in which its records are in order. A
 * resource without records has one empty section.
 */
export async function* exportNetwork(context: Pick<ReadContext, 'db'>): AsyncGenerator<NetworkSection> {
  for (const fileResource of fileResources) {
    const { plural, fields } = fileResource.resource
    const pages = 'name' in fields ? listRecords(context, fileResource, 'name') : sortRecords(context, fileResource)
    let isEmpty = true
    for await (const records of pages) {
      if (records.length === 0) continue
      isEmpty = false
      yield { resource: plural, records }
    }
    if (isEmpty) yield { resource: plural, records: [] }
  }
}

/** All records of a resource in the order of a unique column, page by page. */
async function* listRecords(
  context: Pick<ReadContext, 'db'>,
  fileResource: FileResource,
  column: 'name' | 'n',
): AsyncGenerator<FileRecord[]> {
  let last: string | number | undefined
  for (;;) {
    const all = selectRows(context.db, fileResource.resource).selectAll().orderBy(column).limit(PAGE)
    const rows = (await (last === undefined ? all : all.where(column, '>', last)).execute()) as AnyRow[]
    yield await toFileRecords(context, fileResource, rows)
    if (rows.length < PAGE) return
    last = rows.at(-1)?.[column] as string | number
  }
}

async function toFileRecords(
  context: Pick<ReadContext, 'db'>,
  fileResource: FileResource,
  rows: readonly AnyRow[],
): Promise<FileRecord[]> {
  const { resource } = fileResource
  // Edge routers have a section of their own.
  const entities = rows
    .filter((row) => resolveSubtype(resource, row) === resource)
    .map((row) => entityFromRow(resource, row))
  const initialValues = await InitialValues.load(context, fileResource, entities)
  const configured = entities.filter((entity) => !initialValues.isLeftOut(entity))
  const toName = await loadNames(context, fileResource, configured)
  return configured.map((entity) => toFileRecord(fileResource, entity, toName))
}

/**
 * The records of a resource without names, which the names of other records identify: the first of those that nothing tells
 * apart. Administrators make few of them.
 */
async function* sortRecords(
  context: Pick<ReadContext, 'db'>,
  fileResource: FileResource,
): AsyncGenerator<FileRecord[]> {
  const textsByKey = new Map<string, string>()
  for await (const records of listRecords(context, fileResource, 'n')) {
    for (const record of records) {
      const key = JSON.stringify(fileResource.identifiedBy.map(({ name }) => record[name]))
      if (!textsByKey.has(key)) textsByKey.set(key, JSON.stringify(record))
    }
  }
  const keys = [...textsByKey.keys()].sort()
  for (let at = 0; at < keys.length; at += PAGE)
    yield keys.slice(at, at + PAGE).map((key) => JSON.parse(textsByKey.get(key) ?? '{}') as FileRecord)
}
