// Checks that the libraries with native code load, before anything depends on it.
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { DataDirectoryError } from './data-directory.ts'

/** Programs that load a library with native code, whose file is their argument. */
const LOADERS = {
  argon2: 'require(process.argv[1])',
  'better-sqlite3': "new (require(process.argv[1]))(':memory:')",
}

type NativeLibrary = keyof typeof LOADERS

/**
 * Loads each library in a process of its own, because a file that was compiled for another version of Node.js can end the process
 * that loads it.
 * @throws DataDirectoryError if one does not load
 */
export async function requireNativeLibraries(): Promise<void> {
  await Promise.all((Object.keys(LOADERS) as NativeLibrary[]).map(requireLibrary))
}

function requireLibrary(name: NativeLibrary): Promise<void> {
  const file = createRequire(import.meta.url).resolve(name)
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['--eval', LOADERS[name], file], (error) => {
      if (error) reject(nativeLibraryError(name, error))
      else resolve()
    })
  })
}

/** The error for a library whose native code does not load. */
export function nativeLibraryError(name: NativeLibrary, cause: unknown): DataDirectoryError {
  const message = `the native module of ${name} is missing, or was built for another version of Node.js`
  // npm 12 runs no install scripts that are not allowed by name.
  const remedy = `install again with npm install -g --allow-scripts=${name}, or run npm rebuild ${name} in a clone`
  return new DataDirectoryError('NATIVE_MODULE_MISSING', message, remedy, cause)
}
