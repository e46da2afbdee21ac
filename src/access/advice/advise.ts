// Explains why an identity can reach a service, or cannot: every link between the two, in order, each judged for itself.

import type { PolicyType } from '../../policy/policy-index.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { type Advice, type AdviceLink, type Remedy, toVerdict } from './chain.ts'
import { commonRouterLink, routerKinds, routerPolicyLink } from './router-links.ts'
import { postureLink, servicePolicyLink } from './service-policy-links.ts'
import { authPolicyLink, identityLink } from './sign-in-links.ts'
import { type AdviceParts, readQuestion } from './subject.ts'
import { terminatorLink } from './terminator-link.ts'

/** @throws NOT_FOUND for an identity or a service that does not exist */
export async function advise(
  parts: AdviceParts,
  context: Context,
  identityId: string,
  serviceId: string,
  type: PolicyType,
): Promise<Advice> {
  const question = await readQuestion(parts, context, identityId, serviceId, type)
  const { identity, service } = question
  const kinds = routerKinds(question)
  const { ofIdentity, ofService } = kinds
  const links: AdviceLink[] = [
    identityLink(question),
    await authPolicyLink(question),
    await servicePolicyLink(question),
    await postureLink(question),
    await routerPolicyLink(question, ofIdentity, ofService),
    await routerPolicyLink(question, ofService, ofIdentity),
    await commonRouterLink(question, kinds),
    // Hosting is what makes terminators.
    ...(type === 'Dial' ? [await terminatorLink(question)] : []),
  ]
  const named = ({ id, name }: { readonly id: string; readonly name: string }) => ({ id, name })
  const verdict = toVerdict(links)
  return { identity: named(identity), service: named(service), type, verdict, links: withoutRepeatedRemedies(links) }
}

/** The links, each without the changes that an earlier link proposes. */
function withoutRepeatedRemedies(links: readonly AdviceLink[]): AdviceLink[] {
  const earlier = new Set<string>()
  return links.map(({ remedy, alternatives = [], next = [], ...link }) => {
    const isNew = (one: Remedy) => !earlier.has(JSON.stringify(one))
    const [first, ...others] = [...(remedy ? [remedy] : []), ...alternatives].filter(isNew)
    const nextOnes = next.filter(isNew)
    for (const one of [remedy, ...alternatives, ...next]) earlier.add(JSON.stringify(one))
    return {
      ...link,
      ...(first ? { remedy: first } : {}),
      ...(others.length > 0 ? { alternatives: others } : {}),
      ...(nextOnes.length > 0 ? { next: nextOnes } : {}),
    }
  })
}
