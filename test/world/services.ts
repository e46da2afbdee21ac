// Services as tests make them: with configs, granted by policies, and asked for by clients.
import { CLIENT, type TestController } from './controller.ts'
import type { Management } from './management.ts'
import { newName } from './names.ts'

export function serviceMakers(world: () => TestController, manage: () => Management) {
  return {
    async makeType(name = newName('type')) {
      return { name, id: await manage().make('config-types', { name }) }
    },

    makeConfig: (configTypeId: string, data: object) =>
      manage().make('configs', { name: newName('config'), configTypeId, data }),

    makeService: (more: object = {}) =>
      manage().make('services', { name: newName('service'), encryptionRequired: true, ...more }),

    /** A policy that lets identities with the attribute dial, or bind, a service. */
    grant: (attribute: string, service: string, type = 'Dial') =>
      manage().make('service-policies', {
        name: newName('policy'),
        type,
        semantic: 'AnyOf',
        identityRoles: [`#${attribute}`],
        serviceRoles: [`@${service}`],
      }),

    asClient: (token: string, path: string, method = 'GET', body?: unknown) =>
      world().send({ method, path: CLIENT + path, token, ...(body === undefined ? {} : { body }) }),
  }
}
