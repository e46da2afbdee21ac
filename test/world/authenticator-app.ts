// An authenticator app: reads the URL of an MFA enrollment, and shows the code of a moment (RFC 6238, RFC 4226).
import { createHmac } from 'node:crypto'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

export const STEP_MS = 30_000

export class AuthenticatorApp {
  readonly #secret: Buffer
  readonly issuer: string
  readonly label: string

  constructor(provisioningUrl: string) {
    const url = new URL(provisioningUrl)
    if (url.protocol !== 'otpauth:' || url.host !== 'totp') throw new Error(`no app reads ${provisioningUrl}`)
    const parameters = url.searchParams
    for (const [name, expected] of [
      ['algorithm', 'SHA1'],
      ['digits', '6'],
      ['period', '30'],
    ] as const) {
      if ((parameters.get(name) ?? expected) !== expected) throw new Error(`this app has no other ${name}`)
    }
    this.#secret = decodeBase32(parameters.get('secret') ?? '')
    this.issuer = parameters.get('issuer') ?? ''
    this.label = decodeURIComponent(url.pathname.slice(1))
  }

  get secretBytes(): number {
    return this.#secret.length
  }

  /** The code that the app shows at a time, in milliseconds. */
  code(at: number): string {
    const counter = Buffer.alloc(8)
    counter.writeBigUInt64BE(BigInt(Math.floor(at / STEP_MS)))
    const mac = createHmac('sha1', this.#secret).update(counter).digest()
    const offset = (mac[19] as number) & 0x0f
    return String((mac.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
  }

  /** A code that the app shows at none of the steps near a time. */
  wrongCode(at: number): string {
    const near = new Set(Array.from({ length: 41 }, (_, step) => this.code(at + (step - 20) * STEP_MS)))
    for (let candidate = 0; ; candidate += 1) {
      const code = String(candidate).padStart(6, '0')
      if (!near.has(code)) return code
    }
  }
}

function decodeBase32(text: string): Buffer {
  const bytes: number[] = []
  let bits = 0
  let value = 0
  for (const character of text) {
    value = (value << 5) | ALPHABET.indexOf(character)
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((value >> bits) & 0xff)
    value &= (1 << bits) - 1
  }
  return Buffer.from(bytes)
}
