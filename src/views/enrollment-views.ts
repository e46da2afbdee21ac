// The JWTs of enrollments, which are made when they are looked at.
import type { Enrollment } from '../enrollment/enrollments.ts'
import type { Derive } from '../resources/define.ts'

export const deriveEnrollments: Derive = ({ controller }, rows) =>
  Promise.all(rows.map(async (row) => ({ jwt: await controller.enrollments.jwtOf(row as unknown as Enrollment) })))
