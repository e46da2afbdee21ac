// What controllers are told: settings for all of them, and for single ones what differs.
import { errors, invalidError } from '../errors.ts'
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

/** The settings that hold wherever a controller has none of its own. */
export const GLOBAL_SETTINGS = 'global'

const uris = (summary: string) => f.strings({ nullable: true, omitNull: true, summary })

export const controllerSettings = defineResource({
  name: 'controller-setting',
  plural: 'controller-settings',
  summary:
    'Settings of one controller, or of all of them; a controller has what is not set for it from the global ones.',
  fields: {
    controllerId: f.reference('controllers', {
      required: 'create',
      access: 'create',
      nullable: true,
      unique: true,
      filter: true,
      onDelete: 'cascade',
      summary: 'The controller that the settings are for; its id becomes theirs.',
    }),
    oidc: f.object(
      {
        postLogoutUris: uris('Where clients may be sent after they signed out.'),
        redirectUris: uris('Where clients may be sent after they signed in.'),
      },
      { summary: 'Signing in by OpenID Connect.' },
    ),
  },
  rules: {
    async check(tx, next, previous) {
      if (previous) return
      const { controllerId } = next
      const taken = await tx.db
        .selectFrom('controller_settings')
        .select('id')
        .where('controllerId', '=', controllerId)
        .executeTakeFirst()
      if (taken) throw invalidError('controllerId', 'has settings already', controllerId)
      next.id = controllerId ?? next.id
    },
    async beforeDelete(_tx, { id }) {
      if (id === GLOBAL_SETTINGS) {
        throw errors.CAN_NOT_DELETE_REFERENCED_ENTITY({ message: 'all controllers have their settings from here' })
      }
    },
  },
  builtIn: [{ id: GLOBAL_SETTINGS, controllerId: null as never, oidc: { postLogoutUris: [], redirectUris: [] } }],
  columns: ['id', 'controllerId'],
  example: {
    create: { controllerId: 'controller.example.com', oidc: { redirectUris: ['https://app.example.com/callback'] } },
    filter: 'id = "global"',
  },
})
