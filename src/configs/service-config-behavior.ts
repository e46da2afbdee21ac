// Service configs have the type of their config, so that an identity has one of each type for a service.
import type { Behavior } from '../behavior.ts'
import type { WriteContext } from '../context.ts'
import type { Entity } from '../resources/define.ts'
import type { serviceConfigs } from '../resources/service-configs.ts'

export class ServiceConfigBehavior implements Behavior<typeof serviceConfigs> {
  async check({ db }: WriteContext, next: Entity<typeof serviceConfigs>): Promise<void> {
    const query = db.selectFrom('configs').select('configTypeId').where('id', '=', next.configId)
    next.configTypeId = (await query.executeTakeFirst())?.configTypeId ?? next.configTypeId
  }
}
