// QR codes as text: two rows of modules a line, by half blocks.

/** A text as a QR code, dark on light as readers expect it, whatever colours the terminal has. */
export async function qrText(text: string): Promise<string> {
  const { default: qr } = await import('qrcode')
  const { modules } = qr.create(text, { errorCorrectionLevel: 'L' })
  const { size } = modules
  // Readers need a light margin.
  const isDark = (row: number, column: number) =>
    row >= 0 && column >= 0 && row < size && column < size && modules.get(row, column) === 1
  const lines: string[] = []
  for (let row = -MARGIN; row < size + MARGIN; row += 2) {
    let line = ''
    for (let column = -MARGIN; column < size + MARGIN; column++) {
      line += BLOCKS[(isDark(row, column) ? 2 : 0) + (isDark(row + 1, column) ? 1 : 0)]
    }
    lines.push(line)
  }
  return lines.join('\n')
}

const MARGIN = 2
/** Light modules are what is drawn: neither dark, lower dark, upper dark, both. */
const BLOCKS = ['█', '▀', '▄', ' ']
