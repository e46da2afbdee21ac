// Converts the flags of a body to flags of oclif, with their help texts.
import { Flags, type Interfaces } from '@oclif/core'
import { type BodyFlag, type FlagForm, toKebabCase, toTypedFlag } from './body-flags.ts'

/** The flags as oclif defines them, by the name that is typed. */
export function toOclifFlags(members: readonly BodyFlag[]): Interfaces.FlagInput {
  return Object.fromEntries(members.map((member) => [toTypedFlag(member), toOclifFlag(member)]))
}

const HELP_VALUES: Partial<Record<FlagForm, string>> = {
  file: 'FILE',
  instant: 'TIME',
  minutes: 'DURATION',
  secret: 'FILE',
  pairs: 'KEY=VALUE',
  json: 'JSON|@FILE',
}

function toOclifFlag(member: BodyFlag): Interfaces.Flag<unknown> {
  const { form, schema, flag, path } = member
  const helpValue = HELP_VALUES[form]
  // The full name of the member is an alias, unless it is of another unit.
  const aliases = flag === toKebabCase(path) || form === 'minutes' ? [] : [toKebabCase(path)]
  const common = {
    description: renderDescription(member),
    ...(helpValue ? { helpValue } : {}),
    ...(aliases.length > 0 ? { aliases } : {}),
  }
  const make = (): unknown => {
    switch (form) {
      case 'switch':
        return Flags.boolean({ description: common.description, allowNo: true })
      case 'number':
        return Flags.integer({
          ...common,
          ...(schema.minimum === undefined ? {} : { min: schema.minimum as number }),
          ...(schema.maximum === undefined ? {} : { max: schema.maximum as number }),
        })
      case 'set':
      case 'pairs':
        return Flags.string({ ...common, multiple: true, multipleNonGreedy: true })
      default:
        return Flags.string({
          ...common,
          ...(schema.enum ? { options: schema.enum.filter((value) => value !== null).map(String) } : {}),
        })
    }
  }
  return make() as Interfaces.Flag<unknown>
}

function renderDescription({ schema, form, isRequired, defaultValue, only }: BodyFlag): string {
  const parts = [
    only.length > 0 ? `${only.join(', ')}:` : '',
    isRequired && defaultValue === undefined ? '(required)' : '',
    schema.description ?? '',
    form === 'instant' ? 'A time such as 2030-01-31T12:00:00Z, or a duration from now such as 90m, 24h or 7d.' : '',
    form === 'minutes' ? 'A duration such as 30m, 12h or 7d.' : '',
    schema['x-roles'] ? '#NAME selects by role attribute, @NAME names a record, #all selects all.' : '',
    form === 'set' || form === 'pairs' ? 'Can be repeated.' : '',
    defaultValue === undefined ? '' : `Default: ${toValueText(defaultValue)}.`,
  ]
  return parts.filter((part) => part !== '').join(' ')
}

/** A value as it is typed. */
export function toValueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
