// Text that comes from elsewhere than the command line: files and stdin.
import { readFile } from 'node:fs/promises'
import { makeUsageError } from './exit-codes.ts'

/** Text as it is typed, from a file by `@FILE`, or from stdin by `-`. @throws CommandError with exit code 2 */
export async function readText(flag: string, given: string): Promise<string> {
  if (given === '-') return stdinText(flag)
  return given.startsWith('@') ? fileText(flag, given.slice(1)) : given
}

/** The same, as JSON. */
export async function readJson(flag: string, given: string): Promise<unknown> {
  const text = await readText(flag, given)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw makeUsageError(`--${flag} is not valid JSON: ${(error as Error).message}`, { field: flag })
  }
}

/** A secret from a file, or from stdin by `-`, without the line end that editors and `echo` put there. */
export async function readSecret(flag: string, file: string): Promise<string> {
  const text = file === '-' ? await stdinText(flag) : await fileText(flag, file)
  return text.replace(/\r?\n$/, '')
}

async function fileText(flag: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw makeUsageError(`--${flag} cannot be read: ${(error as Error).message}`, { field: flag })
  }
}

async function stdinText(flag: string): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write(`Type what --${flag} takes, then Ctrl-D on a line of its own.\n`)
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString('utf8')
}
