// The effective settings of a controller, which combine its own with the global ones.

import { combineOidcSettings } from '../../../src/authentication/openid-connect/registered-uris.ts'
import { controllerSettings, GLOBAL_SETTINGS } from '../../../src/definitions/resources/controller-settings.ts'
import type { Entity } from '../../../src/definitions/resources/define.ts'
import { links, listOf, objectOf, requiredObject, text, time } from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import { find, get } from '../../../src/storage/entities/entities.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'
import { makeResourceOperation } from '../resource-operations.ts'

type Settings = Entity<typeof controllerSettings>

const EFFECTIVE = '/controller-settings/:id/effective'
const settings = objectOf({ oidc: objectOf({ postLogoutUris: listOf(text), redirectUris: listOf(text) }) })
const effectiveSchema = requiredObject({
  _links: links,
  id: text,
  createdAt: time,
  updatedAt: time,
  tags: { type: 'object' },
  effective: settings,
  instance: settings,
})

/** Returns the settings of a record, or of a controller without a record of its own. @throws NOT_FOUND */
async function findOwnSettings(context: Context, id: string, global: Settings): Promise<Settings> {
  const own = await find(context, controllerSettings, id)
  if (own) return own
  const controller = await context.db.selectFrom('controllers').select('id').where('id', '=', id).executeTakeFirst()
  if (!controller) throw notFoundError('controller setting', id)
  return { ...global, id, tags: {}, oidc: { postLogoutUris: null, redirectUris: null } }
}

export const controllerSettingOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'detailControllerSettingEffective',
    apis: ['management'],
    topic: 'controller-settings',
    method: 'GET',
    path: EFFECTIVE,
    summary: 'Shows the effective settings of one controller, and its own ones.',
    access: { permission: 'controller-setting.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: effectiveSchema },
    async run({ context, params: { id = '' } }) {
      const global = await get(context, controllerSettings, GLOBAL_SETTINGS)
      const own = await findOwnSettings(context, id, global)
      return dataResponse({
        _links: { self: { href: `./controller-settings/${id}` } },
        id,
        createdAt: toIsoTime(own.createdAt),
        updatedAt: toIsoTime(Math.max(own.updatedAt, global.updatedAt)),
        tags: own.tags,
        effective: { oidc: set(combineOidcSettings(global.oidc, own.oidc)) },
        instance: { oidc: set(own.oidc) },
      })
    },
  }),
  // The public documents write settings at this path; they can also be written where they are read.
  ...(['replace', 'patch', 'delete'] as const).flatMap((verb) => {
    const own = makeResourceOperation(controllerSettings, verb, { errorStatuses: { delete: [409] } })
    return [
      { ...own, path: EFFECTIVE },
      { ...own, id: `${own.id}Itself`, isOwn: true },
    ]
  }),
]

/** The members that are set; the global settings provide the others. */
function set(oidc: Settings['oidc']): Record<string, unknown> {
  return Object.fromEntries(Object.entries(oidc).filter(([, value]) => value !== null))
}
