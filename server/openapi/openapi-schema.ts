// Converts the JSON Schema of definitions to the schema objects of OpenAPI 3.0, and collects named schemas as components.
import { compact, type JsonSchema } from '../../src/definitions/schema/json-schema.ts'

/** A schema object of OpenAPI 3.0: a subset of JSON Schema without type lists and constants, in which null is a keyword. */
export type OpenApiSchema = Readonly<Record<string, unknown>>

export class SchemaComponents {
  readonly #names: ReadonlyMap<JsonSchema, string>
  readonly #schemas: Record<string, OpenApiSchema> = {}

  /** @param names the schemas that documents refer to by name; all others are written where they are used */
  constructor(names: ReadonlyMap<JsonSchema, string>) {
    this.#names = names
  }

  /** The components that the converted schemas refer to, by name. */
  get schemas(): Readonly<Record<string, OpenApiSchema>> {
    return Object.fromEntries(Object.entries(this.#schemas).sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  convert(schema: JsonSchema): OpenApiSchema {
    const name = this.#names.get(schema)
    if (name === undefined) return this.#convertInline(schema)
    if (!(name in this.#schemas)) {
      // The name is taken before the conversion, because a schema may contain itself.
      this.#schemas[name] = {}
      this.#schemas[name] = this.#convertInline(schema)
    }
    return { $ref: `#/components/schemas/${name}` }
  }

  #convertInline(schema: JsonSchema): OpenApiSchema {
    const { type, nullable, enum: values, required = [], ...others } = compact(schema)
    const types = [type ?? []].flat()
    const isNullable = nullable === true || types.includes('null')
    const named = types.filter((one) => one !== 'null')
    const converted = {
      ...this.#convertParts(others),
      // An empty list is not allowed.
      ...(required.length > 0 ? { required } : {}),
      // A null that is allowed must be listed, too.
      ...(values ? { enum: isNullable && !values.includes(null) ? [...values, null] : values } : {}),
    }
    if (named.length > 1) {
      const [first, ...rest] = named.map((one) => ({ type: one }))
      return { ...converted, anyOf: [isNullable ? { ...first, nullable: true } : first, ...rest] }
    }
    return {
      ...(named[0] === undefined ? {} : { type: named[0] }),
      ...converted,
      ...(isNullable ? { nullable: true } : {}),
    }
  }

  /** The keywords of a schema, with the schemas inside them converted. */
  #convertParts({ properties, items, additionalProperties, oneOf, anyOf, discriminator, ...others }: JsonSchema) {
    const alternatives = { ...(oneOf ? { oneOf } : {}), ...(anyOf ? { anyOf } : {}) } as Record<string, JsonSchema[]>
    return {
      ...others,
      ...(properties
        ? { properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, this.convert(one)])) }
        : {}),
      ...(items ? { items: this.convert(items) } : {}),
      ...(additionalProperties === undefined
        ? {}
        : {
            additionalProperties:
              typeof additionalProperties === 'object'
                ? this.convert(additionalProperties as JsonSchema)
                : additionalProperties,
          }),
      ...Object.fromEntries(
        Object.entries(alternatives).map(([keyword, all]) => [keyword, all.map((one) => this.convert(one))]),
      ),
      ...(discriminator ? { discriminator: this.#mapped(discriminator as Discriminator, oneOf as JsonSchema[]) } : {}),
    }
  }

  /** A discriminator that says which alternative each value of its property stands for. */
  #mapped({ propertyName }: Discriminator, alternatives: readonly JsonSchema[]) {
    const mapping = alternatives.map((alternative) => {
      const [value] = alternative.properties?.[propertyName]?.enum ?? []
      return [String(value), this.convert(alternative).$ref]
    })
    return { propertyName, mapping: Object.fromEntries(mapping) }
  }
}

interface Discriminator {
  readonly propertyName: string
}
