// The management API as tests speak it: as an administrator, with the envelope taken off.
import { randomUUID } from 'node:crypto'
import { toCollectionPath } from '../../src/definitions/model/links.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import type { TestController, TestResponse } from './controller.ts'
import { MANAGEMENT } from './controller.ts'

type Body = Readonly<Record<string, unknown>>

export interface Management {
  /** Sends a request and returns the whole response. */
  call(method: string, path: string, body?: unknown): Promise<TestResponse>
  /** Makes a record and returns its id. */
  make(plural: string, body: Body): Promise<string>
  /** The `data` of a GET that succeeds. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read any member of a response
  get(path: string): Promise<any>
  /** A change that succeeds. */
  change(method: 'PUT' | 'PATCH' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<void>
  /** The names of the records that a list holds, in order. */
  names(path: string): Promise<string[]>
  /** Returns the refusal of a request: status, code and cause. */
  refusal(method: string, path: string, body?: unknown): Promise<Refusal>
}

export interface Refusal {
  readonly status: number
  readonly code: string
  readonly field?: string
  readonly value?: string
}

export async function managementOf(world: TestController): Promise<Management> {
  const { token } = await world.signIn({ isAdmin: true, name: `administrator ${randomUUID()}` })
  const call: Management['call'] = (method, path, body) =>
    world.send({ method, path: MANAGEMENT + path, token, ...(body === undefined ? {} : { body }) })

  async function succeeding(method: string, path: string, body?: unknown) {
    const response = await call(method, path, body)
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.text}`)
    return response.body.data
  }

  return {
    call,
    make: async (plural, body) => (await succeeding('POST', toPath(plural), body)).id,
    get: (path) => succeeding('GET', path),
    change: async (method, path, body) => {
      await succeeding(method, path, body)
    },
    names: async (path) => ((await succeeding('GET', path)) as { name: string }[]).map(({ name }) => name),
    async refusal(method, path, body) {
      const { status, body: response } = await call(method, path, body)
      const { code, cause = {} } = response.error ?? {}
      const { field, value } = cause
      return { status, code, ...(field === undefined ? {} : { field }), ...(value ? { value } : {}) }
    },
  }
}

/** The path of the records of a resource, also under another name of it. */
function toPath(plural: string): string {
  const resource = (resources as readonly AnyResource[]).find((each) => each.plural === plural)
  return resource ? toCollectionPath(resource) : `/${plural}`
}
