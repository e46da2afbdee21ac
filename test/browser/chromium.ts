// The browser of the tests: one that the machine has, because none is downloaded.
import { createHash, type X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** The path of a Chromium: CHROMIUM_PATH, else the first in PATH; undefined if there is none. */
export function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const inPath = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)))
  return process.env.CHROMIUM_PATH ?? inPath.find((path) => existsSync(path))
}

/** Opens a browser that trusts the server with this certificate, and no other that public authorities do not vouch for. */
export function openChromium(executablePath: string, certificate: X509Certificate): Promise<Browser> {
  const spki = certificate.publicKey.export({ type: 'spki', format: 'der' })
  const pin = createHash('sha256').update(spki).digest('base64')
  return chromium.launch({
    executablePath,
    args: [
      `--ignore-certificate-errors-spki-list=${pin}`,
      // Needed in containers, where the tests run as root.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    ],
  })
}
