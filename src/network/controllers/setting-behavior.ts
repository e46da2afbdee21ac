// A controller has settings of its own at most once, and the global ones stay.

import { type controllerSettings, GLOBAL_SETTINGS } from '../../definitions/resources/controller-settings.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { errors, invalidError } from '../../foundation/errors.ts'
import type { Behavior } from '../../storage/behavior.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'

type ControllerSetting = Entity<typeof controllerSettings>

export class ControllerSettingBehavior implements Behavior<typeof controllerSettings> {
  async check(tx: WriteContext, next: ControllerSetting, previous: ControllerSetting | undefined): Promise<void> {
    if (previous) return
    const { controllerId } = next
    const existing = await tx.db
      .selectFrom('controller_settings')
      .select('id')
      .where('controllerId', '=', controllerId)
      .executeTakeFirst()
    if (existing) throw invalidError('controllerId', 'has settings already', controllerId)
    next.id = controllerId ?? next.id
  }

  async beforeDelete(_tx: WriteContext, { id }: ControllerSetting): Promise<void> {
    if (id !== GLOBAL_SETTINGS) return
    throw errors.CAN_NOT_DELETE_REFERENCED_ENTITY({ message: 'all controllers have their settings from here' })
  }
}
