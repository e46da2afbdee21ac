// The reasons for which the controller ended connections of routers, as its log tells them.
import type { RecordingLog } from '../recording-log.ts'

const findLast = (log: RecordingLog, isWanted: (line: RecordingLog['lines'][number]) => boolean) =>
  String(log.lines.findLast(isWanted)?.fields.reason)

/** The reason of the last disconnection of a router that was connected. */
export const reasonOfDisconnection = (log: RecordingLog, { id }: { readonly id: string }): string =>
  findLast(log, ({ message, fields }) => message === 'a router disconnected' && fields.routerId === id)

/** The reason of the last rejection of a connection, counted ones included. */
export async function reasonOfRejection(
  { controller }: { readonly controller: { readonly aggregatedLog: { flush(options: object): Promise<void> } } },
  log: RecordingLog,
): Promise<string> {
  await controller.aggregatedLog.flush({ isFinal: true })
  return findLast(log, ({ message }) => message === 'a router was rejected')
}
