// `controller mfa status`: shows whether you have a second factor.
import { EITHER_PATH } from '../../client/client.ts'
import { defineConnectedCommand } from '../../framework/connected.ts'
import { fetchMfa, type Mfa } from './own-mfa.ts'

export const mfaStatus = defineConnectedCommand({
  summary: 'Shows whether you have a second factor.',
  example: '',
  base: EITHER_PATH,
  async run({ client, print }) {
    const enrollment = await fetchMfa(client)
    const facts = {
      isEnrolled: enrollment !== undefined,
      isVerified: enrollment?.isVerified === true,
      ...(enrollment ? { createdAt: enrollment.createdAt } : {}),
    }
    await print({ kind: 'done', sentence: describe(enrollment), facts })
  },
})

function describe(enrollment: Mfa | undefined): string {
  if (!enrollment) return 'You have no second factor; set one up with: controller mfa enroll'
  const { isVerified, createdAt } = enrollment
  return isVerified
    ? `You have a second factor, since ${createdAt}.`
    : `You started to set up a second factor ${createdAt}; go on with: controller mfa enroll`
}
