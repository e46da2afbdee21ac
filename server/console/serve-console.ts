// Serves the files of a web console at the origin of the APIs, which it can then call without CORS.
//
// The console has no privilege: its files are public and the same for everyone, and what it shows comes from the APIs, by
// the session of the person who signs in.
import { readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errors } from '../../src/foundation/errors.ts'
import { invalidSettingError } from '../../src/settings/config.ts'
import type { Config } from '../../src/settings/settings.ts'
import { defineOperation } from '../api/operation.ts'
import { buildContentSecurityPolicy, type Directives, needsReferrer } from './content-security-policy.ts'
import { findFile } from './find-file.ts'
import { findOverlap, findPrivateFile } from './private-files.ts'

/** The path at which OpenZiti controllers have their console: its pages are built for it. */
const CONSOLE_PATH = '/zac'
const INDEX = 'index.html'

const HEADERS = {
  // Browsers ask each time whether a file is still the same, so that an update takes effect at once.
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

/** Its routes have a handler of their own, because a reply sends files. */
const consoleOperation = defineOperation({
  id: 'showConsole',
  apis: [],
  listenerApi: 'management',
  topic: 'informational',
  method: 'GET',
  path: '/',
  summary: 'The files of the console.',
  access: { public: 'the files of the console are the same for everyone; what it shows comes from the APIs' },
  returns: { kind: 'raw', contentType: 'text/html' },
  hasOneForm: true,
  run() {
    throw new Error('the routes of the console have a handler of their own')
  },
})

/**
 * Adds the routes of the console, if the settings name a directory. Other paths below `/zac/` than those of files are pages of
 * the application, and get its index.
 * @param secretDirectories directories of the controller that hold keys and backups
 * @throws ConfigError if the directory has no index, holds a file that other accounts may not read, or overlaps one of those
 */
export async function serveConsole(
  app: FastifyInstance,
  config: Config,
  secretDirectories: readonly string[],
): Promise<void> {
  const directory = config['console.directory']
  if (directory === undefined) return
  const root = await openDirectory(config, directory, secretDirectories)
  const overrides = config['console.contentSecurityPolicy']
  await app.register(fastifyStatic, {
    root,
    serve: false,
    index: false,
    dotfiles: 'deny',
    cacheControl: false,
    // No browser asks for a part of such files.
    acceptRanges: false,
  })
  const route = {
    method: ['GET', 'HEAD'],
    config: { operation: consoleOperation, api: undefined, listenerApi: 'management' as const },
  }
  app.route({
    ...route,
    url: CONSOLE_PATH,
    // The router matches it with and without the slash, from which the links of a page start.
    handler: (request, reply) =>
      hasSlash(request) ? sendConsoleFile(reply, root, INDEX, overrides) : reply.redirect(`${CONSOLE_PATH}/`, 308),
  })
  app.route({
    ...route,
    url: `${CONSOLE_PATH}/*`,
    async handler(request, reply) {
      const path = (request.params as Record<string, string>)['*'] ?? ''
      const file = (await findFile(root, path)) ?? (isPage(request, path) ? INDEX : undefined)
      if (file === undefined) throw errors.NOT_FOUND({ message: 'the console has no such file' })
      return sendConsoleFile(reply, root, file, overrides)
    },
  })
}

async function openDirectory(config: Config, directory: string, secretDirectories: readonly string[]): Promise<string> {
  const root = await realpath(directory).catch(() => undefined)
  const refuse = (reason: string) =>
    invalidSettingError(config, 'console.directory', `names ${directory}, which ${reason}`)
  if (root === undefined) throw refuse(`has no ${INDEX}`)
  const overlap = await findOverlap(root, secretDirectories)
  if (overlap !== undefined) throw refuse(`overlaps ${overlap}, where the controller has keys and backups`)
  const privateFile = await findPrivateFile(root)
  if (privateFile !== undefined) throw refuse(`holds ${privateFile}, which other accounts may not read`)
  if (!(await findFile(root, INDEX))) throw refuse(`has no ${INDEX}`)
  return root
}

function hasSlash({ originalUrl }: FastifyRequest): boolean {
  return originalUrl.split(/[?#]/, 1)[0]?.endsWith('/') === true
}

/** A browser that opens a path without an ending asks for a page of the application. */
function isPage({ headers }: FastifyRequest, path: string): boolean {
  const hasEnding = path.slice(path.lastIndexOf('/') + 1).includes('.')
  return !hasEnding && (headers.accept ?? '').includes('text/html')
}

async function sendConsoleFile(
  reply: FastifyReply,
  root: string,
  file: string,
  overrides: Directives,
): Promise<FastifyReply> {
  const html = file.endsWith('.html') ? await readFile(join(root, file), 'utf8') : undefined
  reply.headers({
    ...HEADERS,
    'content-security-policy': buildContentSecurityPolicy(overrides, html),
    'referrer-policy': needsReferrer(overrides) ? 'strict-origin' : 'no-referrer',
  })
  return reply.sendFile(file, root)
}
