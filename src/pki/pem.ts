// PEM (RFC 7468): the text form of DER.
import type { KeyObject } from 'node:crypto'

const LINE = 64

export function toPem(label: string, bytes: Uint8Array): string {
  return `-----BEGIN ${label}-----\n${wrapLines(Buffer.from(bytes).toString('base64'))}\n-----END ${label}-----\n`
}

/** A private key as PKCS#8. */
export function toKeyPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string
}

/** Base64 text in lines of 64 characters, without a line end at the end. */
export function wrapLines(base64: string): string {
  return base64.match(new RegExp(`.{1,${LINE}}`, 'g'))?.join('\n') ?? ''
}

export interface PemBlock {
  readonly label: string
  readonly bytes: Buffer
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----\r?\n([A-Za-z0-9+/=\r\n]*)-----END ([A-Z0-9 ]+)-----/g

/** Returns all blocks of a text, in order; text around them, and blocks that end with another label, are ignored. */
export function parsePemBlocks(text: string): PemBlock[] {
  return [...text.matchAll(BLOCK)].flatMap(([, label = '', base64 = '', endLabel]) =>
    endLabel === label ? [{ label, bytes: Buffer.from(base64, 'base64') }] : [],
  )
}

/** Returns the block of a text that holds only one block and at most one line end after it; otherwise undefined. */
export function parseSinglePemBlock(text: string): PemBlock | undefined {
  const blocks = parsePemBlocks(text)
  const isAlone = /^-----BEGIN [A-Z0-9 ]+-----[\s\S]*-----END [A-Z0-9 ]+-----(\r?\n)?$/.test(text)
  return blocks.length === 1 && isAlone ? blocks[0] : undefined
}
