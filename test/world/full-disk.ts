// A disk that is full, as this process sees it.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Runs something while a function of the system finds the disk full.
 * @param part a part of the paths for which it does; all by default
 */
export async function withFullDisk<T>(
  call: 'mkdirSync' | 'mkdtempSync' | 'renameSync',
  run: () => Promise<T>,
  part = '',
): Promise<T> {
  const original = fs[call] as (...args: unknown[]) => unknown
  const replacement = (...args: unknown[]) => {
    if (!String(args[0]).includes(part)) return original(...args)
    throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  }
  Object.assign(fs, { [call]: replacement })
  syncBuiltinESMExports()
  try {
    return await run()
  } finally {
    Object.assign(fs, { [call]: original })
    syncBuiltinESMExports()
  }
}
