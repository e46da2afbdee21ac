// The members of an enrollment that are not in its row: its JWT, which is made when it is looked at.
import type { Enrollment } from '../enrollment/enrollments.ts'
import type { Derive } from '../resources/define.ts'

export const deriveEnrollments: Derive = ({ controller }, rows) =>
  Promise.all(
    rows.map(async (row) => ({
      jwt: await controller.enrollments.signJwt(row as unknown as Enrollment),
      // The other authority of an `ottca` enrollment; none has a record yet.
      ca: null,
    })),
  )
