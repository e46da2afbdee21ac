// Documents that are the same for every caller: each stays in memory in one buffer, and is compressed once.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { document, type Response } from '../api/responses.ts'

const compress = promisify(gzip)
const compressedDocuments = new WeakMap<Buffer, Promise<Buffer>>()

/**
 * Returns the response with a document, compressed if the client accepts it.
 * @param acceptEncoding the header of the request
 */
export async function respondWithDocument(
  contentType: string,
  body: Buffer,
  acceptEncoding: string | undefined,
): Promise<Response> {
  // The origin counts as well if other origins are allowed.
  const headers = { vary: 'Accept, Accept-Encoding, Origin' }
  if (!acceptsGzip(acceptEncoding)) return document(contentType, body, headers)
  let compressed = compressedDocuments.get(body)
  if (!compressed) {
    compressed = compress(body)
    compressedDocuments.set(body, compressed)
  }
  return document(contentType, await compressed, { ...headers, 'content-encoding': 'gzip' })
}

/** RFC 9110, section 12.5.3: without the header a client may accept anything, but the clients that send none rarely decompress. */
function acceptsGzip(header = ''): boolean {
  return header.split(',').some((entry) => {
    const [coding = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
    return (coding === 'gzip' || coding === 'x-gzip') && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}
