// The flags of a body as oclif takes them, with what their help says.
import { Flags, type Interfaces } from '@oclif/core'
import { type BodyFlag, type FlagForm, toKebabCase, toTypedFlag } from './body-flags.ts'

export function toOclifFlags(members: readonly BodyFlag[]): Interfaces.FlagInput {
  return Object.fromEntries(members.map((member) => [toTypedFlag(member), toOclifFlag(member)]))
}

const HELP_VALUES: Partial<Record<FlagForm, string>> = {
  file: 'PEM|@FILE',
  instant: 'TIME',
  secret: 'FILE',
  pairs: 'KEY=VALUE',
  json: 'JSON|@FILE',
}

function toOclifFlag(member: BodyFlag): Interfaces.Flag<unknown> {
  const { form, schema, flag, path } = member
  const helpValue = HELP_VALUES[form]
  // The member's full name does, too.
  const aliases = flag === toKebabCase(path) ? [] : [toKebabCase(path)]
  const common = {
    description: describe(member),
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
        return Flags.string({ ...common, ...(schema.enum ? { options: schema.enum.map(String) } : {}) })
    }
  }
  return make() as Interfaces.Flag<unknown>
}

function describe({ schema, form, isRequired, standard, only }: BodyFlag): string {
  const parts = [
    only.length > 0 ? `${only.join(', ')}:` : '',
    isRequired && standard === undefined ? '(required)' : '',
    schema.description ?? '',
    form === 'instant' ? 'A time such as 2030-01-31T12:00:00Z, or from now: 90m, 24h, 7d.' : '',
    form === 'set' || form === 'pairs' ? 'May be given several times.' : '',
    standard === undefined ? '' : `Default: ${toValueText(standard)}.`,
  ]
  return parts.filter((part) => part !== '').join(' ')
}

export function toValueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
