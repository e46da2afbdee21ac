// The `_links` of records: the paths of a record and of what belongs to it, relative to the API's base path.
import type { AnyResource, RecordLink } from '../resources/define.ts'

/** The part of a record that its links depend on: its id, and the fields that name other records. */
type LinkedRow = { readonly id: string } & Readonly<Record<string, unknown>>

export type LinkWriter = (row: LinkedRow) => string

/** The collection that links to records of a resource lead to. */
export function toLinkedPlural({ plural, alternateName }: AnyResource): string {
  return alternateName?.plural ?? plural
}

/** The path of the records of a resource, below that of the API; under another name of it, if one is given. */
export function toCollectionPath({ isOwn, plural }: AnyResource, name = plural): string {
  return isOwn ? `/controller/${name}` : `/${name}`
}

/** JSON text of `_links` for records of a resource. */
export function buildLinkWriter(resource: AnyResource): LinkWriter {
  const base = `.${toCollectionPath(resource, toLinkedPlural(resource))}/`
  const parts = resource.links.map((link) => buildPart(base, link))
  return (row) => {
    let text = `{"self":{"href":"${base}${row.id}"}`
    for (const part of parts) text += part(row)
    return `${text}}`
  }
}

function buildPart(base: string, link: RecordLink): LinkWriter {
  if (typeof link === 'string') return (row) => `,"${link}":{"href":"${base}${row.id}/${link}"}`
  const { key } = link
  if ('to' in link) return (row) => `,"${key}":{"href":"./${link.to.resource}/${row[link.to.field]}"}`
  const { field, is } = link.onlyIf
  return (row) => (row[field] === Number(is) ? `,"${key}":{"href":"${base}${row.id}/${key}"}` : '')
}

/** The columns that the links of a resource are made from. */
export function listLinkColumns(resource: AnyResource): string[] {
  const named = resource.links.flatMap((link) => {
    if (typeof link === 'string') return []
    return 'to' in link ? [link.to.field] : [link.onlyIf.field]
  })
  return ['id', ...named]
}
