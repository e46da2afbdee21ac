// The thread that makes a backup, so that no request waits for it.
import { parentPort, workerData } from 'node:worker_threads'
import { type BackupOptions, type BackupReport, createBackup } from './create-backup.ts'

/** The reply of the thread, before it ends. */
export type BackupReply =
  | { readonly report: BackupReport }
  | { readonly failure: { readonly name: string; readonly code: unknown; readonly message: string } }

async function run(): Promise<BackupReply> {
  try {
    return { report: await createBackup(workerData as BackupOptions) }
  } catch (error) {
    const { name, message, code } = error as Error & { readonly code?: unknown }
    return { failure: { name, code, message } }
  }
}

parentPort?.postMessage(await run())
