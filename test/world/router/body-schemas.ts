// The protobuf message that the body of each kind of message holds, for tests of all kinds.
import type { Message } from '@bufbuild/protobuf'
import type { GenMessage } from '@bufbuild/protobuf/codegenv2'
import { ContentType } from '../../../server/control-channel/content-types.ts'
import * as control from '../../../server/control-channel/messages/control_pb.ts'
import * as edge from '../../../server/control-channel/messages/edge_pb.ts'
import * as metrics from '../../../server/control-channel/messages/metrics_pb.ts'

/** By the number of the kind. Kinds that are missing have no body, text, or headers only. */
export const BODY_SCHEMAS: ReadonlyMap<number, GenMessage<Message>> = new Map<number, GenMessage<Message>>([
  [ContentType.CIRCUIT_REQUEST, control.CircuitRequestSchema],
  [ContentType.FAULT, control.FaultSchema],
  [ContentType.ROUTE, control.RouteSchema],
  [ContentType.UNROUTE, control.UnrouteSchema],
  [ContentType.METRICS, metrics.MetricsMessageSchema],
  [ContentType.INSPECT_REQUEST, control.InspectRequestSchema],
  [ContentType.INSPECT_RESPONSE, control.InspectResponseSchema],
  [ContentType.CIRCUIT_CONFIRMATION, control.CircuitConfirmationSchema],
  [ContentType.ROUTER_LINKS, control.RouterLinksSchema],
  [ContentType.VERIFY_ROUTER, control.VerifyRouterSchema],
  [ContentType.REMOVE_TERMINATORS, control.RemoveTerminatorsRequestSchema],
  [ContentType.VALIDATE_TERMINATORS_V2_REQUEST, control.ValidateTerminatorsV2RequestSchema],
  [ContentType.VALIDATE_TERMINATORS_V2_RESPONSE, control.ValidateTerminatorsV2ResponseSchema],
  [ContentType.PEER_STATE_CHANGE, control.PeerStateChangesSchema],
  [ContentType.UPDATE_ROUTER_INTERFACES, control.RouterInterfacesUpdateSchema],
  [ContentType.SERVER_HELLO, edge.ServerHelloSchema],
  [ContentType.CLIENT_HELLO, edge.ClientHelloSchema],
  [ContentType.SESSION_REMOVED, edge.SessionRemovedSchema],
  [ContentType.API_SESSION_ADDED, edge.ApiSessionAddedSchema],
  [ContentType.API_SESSION_UPDATED, edge.ApiSessionUpdatedSchema],
  [ContentType.API_SESSION_REMOVED, edge.ApiSessionRemovedSchema],
  [ContentType.API_SESSION_HEARTBEAT, edge.ApiSessionHeartbeatSchema],
  [ContentType.REQUEST_CLIENT_RESYNC, edge.RequestClientReSyncSchema],
  [ContentType.UPDATE_EDGE_TERMINATOR_REQUEST, edge.UpdateTerminatorRequestSchema],
  [ContentType.VALIDATE_SESSIONS, edge.ValidateSessionsRequestSchema],
  [ContentType.HEALTH_EVENT, edge.HealthEventRequestSchema],
  [ContentType.CREATE_TERMINATOR_V2_REQUEST, edge.CreateTerminatorV2RequestSchema],
  [ContentType.CREATE_TERMINATOR_V2_RESPONSE, edge.CreateTerminatorV2ResponseSchema],
  [ContentType.ENROLLMENT_CERTS_RESPONSE, edge.EnrollmentCertsResponseSchema],
  [ContentType.ENROLLMENT_EXTEND_ROUTER_REQUEST, edge.EnrollmentExtendRouterRequestSchema],
  [ContentType.ENROLLMENT_EXTEND_ROUTER_VERIFY_REQUEST, edge.EnrollmentExtendRouterVerifyRequestSchema],
  [ContentType.CREATE_API_SESSION_REQUEST, edge.CreateApiSessionRequestSchema],
  [ContentType.CREATE_API_SESSION_RESPONSE, edge.CreateApiSessionResponseSchema],
  [ContentType.CREATE_CIRCUIT_FOR_SERVICE_REQUEST, edge.CreateCircuitForServiceRequestSchema],
  [ContentType.CREATE_CIRCUIT_FOR_SERVICE_RESPONSE, edge.CreateCircuitForServiceResponseSchema],
  [ContentType.SERVICE_LIST, edge.ServicesListSchema],
  [ContentType.CREATE_TUNNEL_TERMINATOR_REQUEST, edge.CreateTunnelTerminatorRequestSchema],
  [ContentType.CREATE_TUNNEL_TERMINATOR_RESPONSE, edge.CreateTunnelTerminatorResponseSchema],
  [ContentType.UPDATE_TUNNEL_TERMINATOR_REQUEST, edge.UpdateTunnelTerminatorRequestSchema],
  [ContentType.CONNECT_EVENTS, edge.ConnectEventsSchema],
  [ContentType.DATA_STATE, edge.DataStateSchema],
  [ContentType.DATA_STATE_CHANGE_SET, edge.DataState_ChangeSetSchema],
  [ContentType.SUBSCRIBE_TO_DATA_MODEL, edge.SubscribeToDataModelRequestSchema],
])
