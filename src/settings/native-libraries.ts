// Checks that the libraries with native code load, before anything depends on it.
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { DataDirectoryError } from './data-directory.ts'

/** The version of Node-API that better-sqlite3 13 requires, which Node.js has since 22.14. */
const NODE_API = 10

/**
 * Version 13 of better-sqlite3 brings its native code for the usual systems. Version 12 is compiled or downloaded for each version of
 * Node.js, and since 24.19 its destructors end the process.
 */
export const SQLITE_LIBRARY = Number(process.versions.napi) >= NODE_API ? 'better-sqlite3' : 'better-sqlite3-12'

const OPEN_DATABASE = "new (require(process.argv[1]))(':memory:')"

// npm 12 runs no install scripts that are not allowed by name.
const LIBRARIES: Readonly<Record<string, { readonly loader: string; readonly remedy: string }>> = {
  argon2: {
    loader: 'require(process.argv[1])',
    remedy: 'install again with npm install -g --allow-scripts=argon2, or run npm rebuild argon2 in a clone',
  },
  'better-sqlite3': {
    loader: OPEN_DATABASE,
    remedy: 'install again; for systems for which it brings none, run npm run build-release in its folder',
  },
  'better-sqlite3-12': {
    loader: OPEN_DATABASE,
    remedy:
      'use Node.js 22.14 or later, or install again with npm install -g --allow-scripts=better-sqlite3 (npm ci in a clone) where npm ' +
      'can download a file from GitHub, or finds Python 3, make and a C++ compiler',
  },
}

/**
 * Loads each library in a process of its own, because a file that was compiled for another version of Node.js can end the process
 * that loads it.
 * @throws DataDirectoryError if one does not load
 */
export async function requireNativeLibraries(): Promise<void> {
  await Promise.all(['argon2', SQLITE_LIBRARY].map(requireLibrary))
}

async function requireLibrary(name: string): Promise<void> {
  try {
    const file = createRequire(import.meta.url).resolve(name)
    await promisify(execFile)(process.execPath, ['--eval', LIBRARIES[name]!.loader, file])
  } catch (error) {
    throw nativeLibraryError(name, error)
  }
}

/** The error for a library whose native code does not load. */
export function nativeLibraryError(name: string, cause: unknown): DataDirectoryError {
  const message = `the native module of ${name} is missing, or was built for another version of Node.js`
  return new DataDirectoryError('NATIVE_MODULE_MISSING', message, LIBRARIES[name]!.remedy, cause)
}
