// JSON that is already text, so that it is copied instead of parsed and written again.

export class RawJson {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** JSON text of any value; a `RawJson` inside of it is copied. Members that are undefined are left out. */
export function toJsonText(value: unknown): string {
  if (value instanceof RawJson) return value.text
  // Most computed members are: to call the serializer for one costs ten times as much.
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  if (Array.isArray(value)) return `[${value.map(toJsonText).join(',')}]`
  if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
    let members = ''
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue
      members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${toJsonText(member)}`
    }
    return `{${members}}`
  }
  return JSON.stringify(value) ?? 'null'
}
