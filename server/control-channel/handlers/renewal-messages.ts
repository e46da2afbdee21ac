// Messages by which routers renew their certificates.
import { create, toBinary } from '@bufbuild/protobuf'
import { RenewalError } from '../../../src/network/routers/certificate-renewal.ts'
import { ContentType } from '../content-types.ts'
import {
  EnrollmentCertsResponseSchema,
  EnrollmentExtendRouterRequestSchema,
  EnrollmentExtendRouterVerifyRequestSchema,
  ErrorSchema,
} from '../messages/edge_pb.ts'
import { type MessageHandlers, type RouterPeer, withBody } from './message-handler.ts'

/** A request, and the confirmation that the new certificates were received. */
export const renewalHandlers: MessageHandlers = [
  [
    ContentType.ENROLLMENT_EXTEND_ROUTER_REQUEST,
    withBody(EnrollmentExtendRouterRequestSchema, async (session, request) => {
      const { controller, router, channel } = session
      const system = controller.contexts.create({ kind: 'system' })
      const requests = { certCsr: request.clientCertCsr, serverCertCsr: request.serverCertCsr }
      try {
        const issued = await controller.routers.renewal.request(system, router, requests)
        const { cert: clientCertPem, serverCert: serverCertPem } = issued
        // Routers that cannot confirm what they receive use it at once.
        if (!request.requireVerification) await controller.routers.renewal.confirm(system, router, clientCertPem)
        const response = create(EnrollmentCertsResponseSchema, { clientCertPem, serverCertPem })
        // Routers take it for a message of its own, not for a reply.
        channel.send(ContentType.ENROLLMENT_CERTS_RESPONSE, toBinary(EnrollmentCertsResponseSchema, response))
      } catch (error) {
        // No response says that a request is refused: the router asks again.
        if (!(error instanceof RenewalError)) throw error
        logRefusal(session, error)
      }
    }),
  ],
  [
    ContentType.ENROLLMENT_EXTEND_ROUTER_VERIFY_REQUEST,
    withBody(EnrollmentExtendRouterVerifyRequestSchema, async (session, request, message) => {
      const { controller, router, channel } = session
      const system = controller.contexts.create({ kind: 'system' })
      const respond = (code: string, text: string) => {
        const body = toBinary(ErrorSchema, create(ErrorSchema, { code, message: text }))
        channel.send(ContentType.ERROR, body, { replyTo: message })
      }
      try {
        await controller.routers.renewal.confirm(system, router, request.clientCertPem)
        controller.log.info({ routerId: router.id }, 'the certificates of a router were renewed')
        // Without a code it is success.
        respond('', '')
      } catch (error) {
        if (!(error instanceof RenewalError) || error.reason === undefined) throw error
        logRefusal(session, error)
        respond(error.reason, error.message)
      }
    }),
  ],
]

function logRefusal({ controller, router }: RouterPeer, { message: reason }: RenewalError): void {
  const fields = { routerId: router.id, reason }
  controller.aggregatedLog.warn(router.id, fields, 'certificates of a router were not renewed')
}
