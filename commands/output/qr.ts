// Renders QR codes as text, with half blocks for two rows of modules per line.

/** The text as a QR code, light on dark. */
export async function renderQrCode(text: string): Promise<string> {
  const { default: qr } = await import('qrcode-terminal')
  return new Promise((resolve) => qr.generate(text, { small: true }, resolve))
}
