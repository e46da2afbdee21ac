// Every command by its id: those that people need more of are written by hand, all others follow from the API.
import { apiDescription } from './api/description.ts'
import { operationCommands } from './api/operation-commands.ts'
import type { CommandClass } from './connected.ts'
import { Init } from './init.ts'
import { Login } from './login.ts'
import { Serve } from './serve.ts'

const written = { init: Init, serve: Serve, login: Login }

// Defined one by one: the commands of operations are made when they are looked up.
export const COMMANDS: Readonly<Record<string, CommandClass>> = Object.defineProperties(
  operationCommands(apiDescription()),
  Object.getOwnPropertyDescriptors(written as unknown as Record<string, CommandClass>),
)
