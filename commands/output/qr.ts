// QR codes as text: two rows of modules a line, by half blocks.

/** A text as a QR code, light on dark as terminals are. */
export async function renderQrCode(text: string): Promise<string> {
  const { default: qr } = await import('qrcode-terminal')
  return new Promise((resolve) => qr.generate(text, { small: true }, resolve))
}
