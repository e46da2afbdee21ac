// Bodies of several shapes, of which one member names the shape.

import {
  assertObject,
  type BodyShape,
  type BodyTolerance,
  buildBodyShape,
  readBody,
} from '../../src/definitions/schema/bodies.ts'
import { type Fields, f } from '../../src/definitions/schema/fields.ts'
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'
import { withSchemaNames } from '../../src/definitions/schema/member-names.ts'
import { errors, invalidError } from '../../src/foundation/errors.ts'
import type { BodyReader } from '../api/operation.ts'

/** The shapes of a body: the fields of each by the value of the member that names it. */
export interface VariantShapes {
  readonly discriminator: string
  /** The fields of every shape. */
  readonly common: Fields
  readonly variants: Readonly<Record<string, Fields>>
}

interface CompiledVariants {
  readonly schema: JsonSchema
  read(sent: unknown, tolerance: BodyTolerance, path: string): Record<string, unknown>
}

/** One object of one of the shapes. */
export function readVariantBody<B>(shapes: VariantShapes): BodyReader<B> {
  const { schema, read } = compileVariants(shapes)
  return {
    schema,
    isRequired: true,
    contentTypes: ['application/json'],
    read: (sent, tolerance) => read(sent, tolerance, '') as B,
  }
}

/** A JSON array of such objects, at most `maxItems`. */
export function readVariantBodies<B>(shapes: VariantShapes, maxItems: number): BodyReader<readonly B[]> {
  const { schema, read } = compileVariants(shapes)
  return {
    schema: { type: 'array', items: schema, maxItems },
    isRequired: true,
    contentTypes: ['application/json'],
    read(sent, tolerance) {
      if (!Array.isArray(sent)) throw errors.COULD_NOT_PARSE_BODY({ message: 'the body must be a JSON array' })
      if (sent.length > maxItems) throw invalidError('body', `must have at most ${maxItems} entries`)
      return sent.map((entry, at) => read(entry, tolerance, `${at}.`) as B)
    },
  }
}

function compileVariants({ discriminator, common, variants }: VariantShapes): CompiledVariants {
  const byName = new Map<string, BodyShape>()
  for (const [name, fields] of Object.entries(variants)) {
    const discriminatorField = f.choice([name], { required: true })
    byName.set(name, buildBodyShape('create', { [discriminator]: discriminatorField, ...common, ...fields }))
  }
  const names = [...byName.keys()]
  const discriminated: JsonSchema = { type: 'object', properties: { [discriminator]: { type: 'string' } } }
  return {
    schema: {
      oneOf: [...byName.values()].map(({ schema }) => schema),
      discriminator: { propertyName: discriminator },
    },
    read(sent, tolerance, path) {
      assertObject(sent)
      const body = tolerance.memberCase === 'any' ? withSchemaNames(discriminated, sent) : sent
      assertObject(body)
      const value = Object.hasOwn(body, discriminator) ? body[discriminator] : undefined
      if (value === undefined || value === null) throw invalidError(path + discriminator, 'is required')
      const name = names.find((one) => one === value)
      if (name === undefined) {
        const reason = `must be one of ${names.join(', ')}`
        throw errors.COULD_NOT_PARSE_BODY({ field: path + discriminator, reason, value })
      }
      return readBody(byName.get(name) as BodyShape, body, tolerance, path)
    },
  }
}
