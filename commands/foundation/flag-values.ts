// Reads the values of flags from files and from stdin.
import { readFile } from 'node:fs/promises'
import { makeUsageError } from './exit-codes.ts'
import { describeFileError } from './file-errors.ts'

/**
 * The value of a flag: as it is typed, from a file by `@FILE`, or from stdin by `-`. @throws CommandError with exit
 * code 2 if it cannot be read
 */
export async function readText(flag: string, value: string): Promise<string> {
  if (value === '-') return readStdin(`the value of --${flag}`)
  return value.startsWith('@') ? readTextFile(flag, value.slice(1)) : value
}

/** Like `readText`, parsed as JSON. @throws CommandError with exit code 2 if it is not JSON */
export async function readJson(flag: string, value: string): Promise<unknown> {
  const text = await readText(flag, value)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw makeUsageError(`--${flag} is not valid JSON: ${(error as Error).message}`, { field: flag })
  }
}

/** A secret from a file, or from stdin by `-`, without the line end that editors and `echo` append. */
export async function readSecret(flag: string, file: string): Promise<string> {
  const text = file === '-' ? await readStdin(`the value of --${flag}`) : await readTextFile(flag, file)
  return text.replace(/\r?\n$/, '')
}

/** A PEM text from a file, from stdin by `-`, or as it is typed. A path may also follow an `@`. */
export async function readPem(flag: string, value: string): Promise<string> {
  if (value.startsWith('-----BEGIN ') || value === '-' || value.startsWith('@')) return readText(flag, value)
  return readTextFile(flag, value)
}

async function readTextFile(flag: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw makeUsageError(`--${flag} cannot be read: ${path}: ${describeFileError(error, path)}`, { field: flag })
  }
}

/** @throws CommandError with exit code 2 if several of these flags read stdin, which can be read once */
export function assertOneStdin(flags: Readonly<Record<string, unknown>>, names: readonly string[]): void {
  const readers = names.filter((name) => flags[name] === '-').map((name) => `--${name}`)
  if (readers.length > 1) throw makeUsageError(`${readers.join(' and ')} cannot both come from stdin`)
}

/** The text of stdin. @param subject what it is, for the message on a terminal */
export async function readStdin(subject: string): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write(`Enter ${subject}, then press Ctrl-D on a new line.\n`)
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString('utf8')
}

/**
 * @param only what the command writes
 * @param accepted the output formats that mean the same
 * @throws CommandError with exit code 2 if the output format is another one
 */
export function assertOutput(
  output: unknown,
  command: string,
  only: string,
  accepted: readonly string[] = ['table'],
): void {
  if (output === undefined || accepted.includes(output as string)) return
  throw makeUsageError(`${command} writes ${only} only, not ${output}`, { field: 'output' })
}
