// Every command by its id. Cheap to load: what a command works with is loaded when it runs.
import type { Resource } from '../src/resources/define.ts'
import { resources } from '../src/resources/index.ts'
import { AdminRecover } from './admin-recover.ts'
import type { CommandClass } from './connected.ts'
import { Init } from './init.ts'
import { Login } from './login.ts'
import { resourceCommands } from './resource-commands.ts'
import { Serve } from './serve.ts'

export const COMMANDS: Readonly<Record<string, CommandClass>> = {
  init: Init as unknown as CommandClass,
  serve: Serve as unknown as CommandClass,
  login: Login as unknown as CommandClass,
  'admin:recover': AdminRecover as unknown as CommandClass,
  ...Object.assign({}, ...(resources as readonly Resource[]).map(resourceCommands)),
}
