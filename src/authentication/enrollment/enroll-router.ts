// The certificates of routers: one as a client of the controller, one as a server of clients and of other routers.
import { X509Certificate } from 'node:crypto'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { routers } from '../../definitions/resources/routers.ts'
import { errors } from '../../foundation/errors.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint, type EncodedCertificate } from '../../pki/certificates.ts'
import { encodeCommonName, readCommonName } from '../../pki/names.ts'
import { readSigningRequest } from '../../pki/requests.ts'
import { type EntityStore, find } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'

/** The PEM signing requests of a router. */
export interface RouterRequests {
  readonly certCsr?: string | undefined
  readonly serverCertCsr?: string | undefined
}

/** PEM: each certificate is followed by the intermediates, without the root. */
export interface RouterCertificates {
  readonly cert: string
  readonly serverCert: string
}

interface IssuedRouterCertificates extends RouterCertificates {
  readonly client: EncodedCertificate
}

/** The router that enrolls, and its method. */
export interface EnrollingRouter {
  readonly id: string
  readonly method: 'erott' | 'trott'
}

/**
 * Issues the certificates of a router that enrolls. `erott` requires the id of the router as the only common name of its client
 * certificate; `trott` writes it there.
 * @throws MISSING_OR_INVALID_CSR, COULD_NOT_PROCESS_CSR
 */
export function issueRouterCertificates(
  authority: Authority,
  { clock }: Pick<Context, 'clock'>,
  { id, method }: EnrollingRouter,
  { certCsr, serverCertCsr }: RouterRequests,
): IssuedRouterCertificates {
  if (!certCsr || !serverCertCsr) throw errors.MISSING_OR_INVALID_CSR()
  const now = clock.now()
  const server = authority.issueRouter(readSigningRequest(serverCertCsr), 'server', now)
  const request = readSigningRequest(certCsr)
  if (method === 'erott' && readCommonName(request.subject) !== id)
    throw errors.COULD_NOT_PROCESS_CSR({ message: 'its only common name must be the id of the router' })
  const subject = method === 'erott' ? request.subject : encodeCommonName(id)
  const client = authority.issueRouter({ ...request, subject }, 'client', now)
  return { client, cert: authority.clientChainPem(client), serverCert: authority.clientChainPem(server) }
}

/** Stores the client certificate that a router proves itself with from now on. @throws NOT_FOUND */
export async function storeRouterCertificate(
  entities: EntityStore,
  tx: WriteContext,
  { id, method }: EnrollingRouter,
  certificate: EncodedCertificate,
): Promise<void> {
  const values = {
    isVerified: true,
    fingerprint: computeFingerprint(certificate),
    unverifiedFingerprint: null,
    unverifiedCertPem: null,
    formerFingerprint: null,
  }
  const certPem = new X509Certificate(certificate.raw).toString()
  const edgeRouter = method === 'erott' ? await find(tx, edgeRouters, id) : undefined
  if (edgeRouter) {
    await entities.update(tx, edgeRouters, edgeRouter, { ...values, certPem })
    return
  }
  const router = await find(tx, routers, id)
  if (!router) throw errors.INVALID_ENROLLMENT_TOKEN()
  await entities.update(tx, routers, router, { ...values, certPem })
}

/**
 * Replaces the certificates of the router that presents `leaf`, which is a valid certificate of this controller; the certificate that it presents is worth nothing afterwards
 * (C38 of the client document).
 * @throws UNAUTHORIZED if no router that may connect has this certificate, MISSING_OR_INVALID_CSR, COULD_NOT_PROCESS_CSR
 */
export async function extendRouterCertificates(
  { entities, authority }: { readonly entities: EntityStore; readonly authority: Authority },
  context: Context,
  leaf: X509Certificate,
  requests: RouterRequests,
): Promise<RouterCertificates> {
  const router = await findRouterByCertificate(context, leaf)
  const { client, ...issued } = issueRouterCertificates(authority, context, router, requests)
  await context.write(async (tx) => {
    const current = await findRouterByCertificate(tx, leaf)
    await storeRouterCertificate(entities, tx, current, client)
  })
  return issued
}

/** @throws UNAUTHORIZED */
async function findRouterByCertificate({ db }: Pick<Context, 'db'>, leaf: X509Certificate): Promise<EnrollingRouter> {
  const row = await db
    .selectFrom('routers')
    .select(['id', 'isEdge'])
    .where('fingerprint', '=', computeFingerprint(leaf))
    .where('disabled', '=', 0)
    .executeTakeFirst()
  if (!row) throw errors.UNAUTHORIZED()
  return { id: row.id, method: row.isEdge === 1 ? 'erott' : 'trott' }
}
