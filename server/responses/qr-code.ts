// QR codes as images; a module of its own, so that the library is loaded with the first of them.
import QRCode from 'qrcode'

// The library multiplies the modules by their width in pixels, and rounds down a product that is a little too small.
const WIDTH_PIXELS = 256.5

/** Returns an SVG element, as large as what it stands in, with medium error correction and a quiet zone. */
export function drawQrCodeAsSvg(text: string): Promise<string> {
  return QRCode.toString(text, { type: 'svg', errorCorrectionLevel: 'M', margin: 2 })
}

/** Returns a PNG, 256 pixels wide, with medium error correction and a quiet zone. */
export function drawQrCode(text: string): Promise<Buffer> {
  return QRCode.toBuffer(text, { type: 'png', errorCorrectionLevel: 'M', width: WIDTH_PIXELS })
}
