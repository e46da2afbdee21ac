// Service configs have the type of their config, so that an identity has one of each type for a service.

import type { Entity } from '../../definitions/resources/define.ts'
import type { serviceConfigs } from '../../definitions/resources/service-configs.ts'
import { invalidError } from '../../foundation/errors.ts'
import type { Behavior } from '../../storage/behavior.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'

export class ServiceConfigBehavior implements Behavior<typeof serviceConfigs> {
  /** @throws COULD_NOT_VALIDATE if the identity has another config of the type for the service */
  async check({ db }: WriteContext, next: Entity<typeof serviceConfigs>): Promise<void> {
    const type = db.selectFrom('configs').select('configTypeId').where('id', '=', next.configId)
    next.configTypeId = (await type.executeTakeFirst())?.configTypeId ?? next.configTypeId
    const { id, identityId, serviceId, configTypeId } = next
    const other = await db
      .selectFrom('service_configs')
      .innerJoin('configs', 'configs.id', 'service_configs.configId')
      .select('configs.name')
      .where('service_configs.identityId', '=', identityId)
      .where('service_configs.serviceId', '=', serviceId)
      .where('service_configs.configTypeId', '=', configTypeId)
      .where('service_configs.id', '!=', id)
      .executeTakeFirst()
    if (other) throw invalidError('configId', `is of the same type as ${other.name}, which the identity has already`)
  }
}
