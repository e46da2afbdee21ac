// Webhooks: addresses to which the controller sends events.
import { f } from '../schema/fields.ts'
import { objectOf, orNull, text, time } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'
import { eventTypes } from './event-types.ts'

export const deliveryStates = ['delivering', 'failing', 'paused', 'disabled', 'not-permitted'] as const
export type DeliveryState = (typeof deliveryStates)[number]

export const webhooks = defineResource({
  name: 'webhook',
  plural: 'webhooks',
  summary: 'An address to which the controller sends events, in order, each signed.',
  isOwn: true,
  fields: {
    name: f.name(),
    address: f.text({
      required: true,
      filter: true,
      maxLength: 2_000,
      format: 'uri',
      summary: 'The URL that events are posted to.',
    }),
    types: f.choices(eventTypes, {
      summary: 'The types of events that are sent. Default: all.',
    }),
    enabled: f.bool({
      default: true,
      filter: true,
      summary: 'Whether events are sent. Those of the meantime follow when it is enabled again.',
    }),
    ownerId: f.text({
      access: 'read',
      nullable: true,
      filter: true,
      summary:
        'The identity that changed it last, by whose rights events are sent. Null: a person on the machine of the controller.',
    }),
    pausedAt: f.time({
      access: 'read',
      nullable: true,
      filter: true,
      summary:
        'Since when nothing is sent, because the receiver failed for a day. Any change of the webhook ends the pause.',
    }),
    encryptedSecret: f.text({ access: 'internal', secret: true, isEncrypted: true }),
    // Up to where events were delivered, as far as that is stored already.
    cursor: f.text({ access: 'internal' }),
  },
  inputs: {
    secret: f.text({
      required: 'create',
      minLength: 16,
      maxLength: 200,
      secret: true,
      summary: 'What deliveries are signed by. If it begins with whsec_, the key is the rest, decoded from Base64.',
    }),
  },
  computed: {
    delivery: {
      ...objectOf({
        state: {
          ...text,
          enum: deliveryStates,
          description:
            'not-permitted: the identity that changed it last may not receive events any more; another one has to change it.',
        },
        failure: { ...orNull(text), description: 'Why the last attempt failed.' },
        failingSince: orNull(time),
        deliveredAt: { ...orNull(time), description: 'When the last event was delivered, since the start.' },
      }),
      nullable: true,
      'x-offline': null,
      description: 'How deliveries go.',
    },
  },
  computedFrom: ['enabled', 'pausedAt'],
  // It would lack the secret.
  networkFile: false,
  columns: ['id', 'name', 'address', 'types', 'enabled'],
  example: {
    create: {
      name: 'alerts',
      address: 'https://alerts.example/events',
      types: ['router-offline', 'sign-in-refused'],
      secret: 'a secret of at least 16 characters',
    },
    filter: 'enabled = true sort by name',
  },
})
