// Settings that controllers receive: for all of them, and for single ones those that differ.
import { f, type Objection } from '../schema/fields.ts'
import { defineResource } from './define.ts'

/** The settings that hold wherever a controller has none of its own. */
export const GLOBAL_SETTINGS = 'global'

// RFC 3986, section 4.3: without a fragment. It is compared as text, so that a wildcard may stand anywhere.
const ABSOLUTE_URI = /^[a-z][a-z\d+.-]*:[\w.~:/?@!$&'()*+,;=%[\]-]+$/i
/** The schemes of URIs that are content or code, and lead to no client. */
const REFUSED_SCHEME = /^(?:javascript|data):/i

function checkUris(uris: readonly string[]): Objection | undefined {
  const invalid = uris.find((uri) => !ABSOLUTE_URI.test(uri) || REFUSED_SCHEME.test(uri))
  return invalid === undefined
    ? undefined
    : { reason: 'must be absolute URIs without a fragment, and neither javascript: nor data:', value: invalid }
}

const uris = (summary: string) => f.strings({ nullable: true, omitNull: true, objection: checkUris, summary })

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
    // In the global settings: when the first router connected that accepts signed tokens of sessions only. It stays when that router
    // is deleted, because hosts keep the tokens that they have.
    signsSessionsSince: f.time({ access: 'internal', nullable: true }),
  },
  builtIn: [{ id: GLOBAL_SETTINGS, controllerId: null as never, oidc: { postLogoutUris: [], redirectUris: [] } }],
  networkFile: ['controllerId'],
  columns: ['id', 'controllerId'],
  example: {
    create: { controllerId: 'controller.example.com', oidc: { redirectUris: ['https://app.example.com/callback'] } },
    filter: 'id = "global"',
  },
})
