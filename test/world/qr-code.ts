// Reads QR codes from pixels, as the camera of a phone does, and images from HTTPS responses.
import { get } from 'node:https'
import jsqr from 'jsqr'
import { PNG } from 'pngjs'

export interface Pixels {
  readonly width: number
  readonly height: number
  /** Four bytes for each pixel: red, green, blue and alpha. */
  readonly data: Uint8Array
}

/** Returns the text of a QR code that is dark on light, or undefined if there is none. */
export function readQrCode({ data, width, height }: Pixels): string | undefined {
  const read = (jsqr as unknown as { default: typeof jsqr.default }).default
  return read(new Uint8ClampedArray(data), width, height, { inversionAttempts: 'dontInvert' })?.data
}

export function readPng(bytes: Buffer): Pixels {
  return PNG.sync.read(bytes)
}

/** Downloads bytes over TLS. */
export function download(
  url: string,
  rootPem: string,
  headers: Record<string, string>,
): Promise<{ status: number; contentType: string | undefined; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const request = get(url, { ca: rootPem, agent: false, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          contentType: response.headers['content-type'],
          bytes: Buffer.concat(chunks),
        }),
      )
    })
    request.on('error', reject)
  })
}
