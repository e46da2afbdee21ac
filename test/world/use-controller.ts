// The controller of a test file: opened before its tests, or before each, and closed after them.
import { basename, dirname } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { type TestController, type TestOptions, testController } from './controller.ts'

/** The folders whose controllers another one follows: to open it doubles the time that a controller takes to open. */
const FOLLOWED_FOLDERS = ['resources', 'signers']

/** The options of a controller; a function if they are known only once the hooks before it have run. */
type Options = TestOptions | (() => TestOptions | Promise<TestOptions>)

export interface UsedController extends TestController {
  /** Opens the controller again after it has stopped, on its directory and by its clock unless the options say otherwise. */
  reopen(options?: TestOptions): Promise<void>
}

/** A controller that all tests of the file, or of the block that calls this, share. In some folders, another one follows it. */
export function useController(options: Options = {}): UsedController {
  const folder = basename(dirname(expect.getState().testPath ?? ''))
  const { world, open, close } = defineWorld(options, FOLLOWED_FOLDERS.includes(folder) ? { isFollowed: true } : {})
  beforeAll(open)
  afterAll(close)
  return world
}

/** A new controller for each test of the file, or of the block that calls this. */
export function useControllerPerTest(options: Options = {}): UsedController {
  const { world, open, close } = defineWorld(options)
  beforeEach(open)
  afterEach(close)
  return world
}

function defineWorld(options: Options, defaults: TestOptions = {}) {
  let opened: TestController | undefined
  const current = (): TestController => {
    if (!opened) throw new Error('the controller is open in tests and in the hooks after useController only')
    return opened
  }
  const world: UsedController = {
    get controller() {
      return current().controller
    },
    get directory() {
      return current().directory
    },
    get clock() {
      return current().clock
    },
    get system() {
      return current().system
    },
    send: (request) => current().send(request),
    admin: () => current().admin(),
    signIn: (values) => current().signIn(values),
    signInAgain: (identityId) => current().signInAgain(identityId),
    listen: () => current().listen(),
    stop: () => current().stop(),
    close: () => current().close(),
    async reopen(others = {}) {
      const { directory, clock } = current()
      opened = await testController({ ...defaults, directory, clock, ...others })
    },
  }
  return {
    world,
    async open() {
      opened = await testController({ ...defaults, ...(typeof options === 'function' ? await options() : options) })
    },
    async close() {
      const closing = opened
      opened = undefined
      await closing?.close()
    },
  }
}
