// The compiler of schemas: a schema is compiled at its first use, while a request waits for it and all others with it.
import { Ajv } from 'ajv'
import { afterEach, expect, it, vi } from 'vitest'
import { compiledResources } from '../../src/definitions/model/index.ts'
import { createSchemaCompiler } from '../../src/definitions/schema/validate.ts'

afterEach(() => vi.unstubAllGlobals())

const schemas = compiledResources.flatMap(({ bodyShapes }) =>
  (['create', 'replace', 'patch'] as const).flatMap((purpose) =>
    Array.from(bodyShapes[purpose].values(), ({ schema }) => schema),
  ),
)

it('the first use of a schema compiles that schema alone', () => {
  const compiled: unknown[] = []
  const construct = (target: typeof Function, source: string[]) => {
    compiled.push(source.at(-1))
    return Reflect.construct(target, source)
  }
  vi.stubGlobal('Function', new Proxy(Function, { construct }))
  const compiler = createSchemaCompiler()

  for (const schema of schemas.slice(0, 3)) compiler.compile(schema)

  expect(compiled).toHaveLength(3)
})

it('the schemas of all bodies are valid JSON Schema, which the compiler does not check', () => {
  const ajv = new Ajv({ strict: false })

  expect(schemas.filter((schema) => !ajv.validateSchema(schema))).toEqual([])
  expect(schemas.length).toBeGreaterThan(50)
})
