// Renders QR codes as text: dark on light by explicit colors, so that a camera reads them on any background of a terminal.

/** How a QR code is drawn. */
export interface QrOptions {
  /** Two columns and a row for each module, for fonts in which half blocks do not meet. */
  readonly isLarge?: boolean
  /** The width of the light border, in modules: from 1 to 4. ISO/IEC 18004 asks for 4; cameras accept 2. */
  readonly quietZone?: number
}

// Black and white of the fixed part of the palette: themes replace the first sixteen colors. They are not decoration, so
// NO_COLOR does not concern them.
const BLACK_ON = '48;5;16'
const WHITE_ON = '48;5;231'
const WHITE_ON_BLACK = `38;5;231;${BLACK_ON}`
const RESET = '\u001b[0m'

/** Returns the lines of a QR code with low error correction, the smallest for its text. */
export async function renderQrCode(
  text: string,
  { isLarge = false, quietZone = 4 }: QrOptions = {},
): Promise<string[]> {
  const { default: qr } = await import('qrcode-terminal')
  const drawing = await new Promise<string>((resolve) => qr.generate(text, { small: !isLarge }, resolve))
  const lines = drawing.trimEnd().split('\n')
  return isLarge ? toLargeLines(lines, quietZone) : toSmallLines(lines, quietZone)
}

/**
 * The library draws light half blocks, with a border of one module; a line holds two rows of modules. Its first line is half
 * of a border, which has to go, because the rows above it would not meet it.
 */
function toSmallLines([, ...lines]: readonly string[], quietZone: number): string[] {
  const side = '█'.repeat(quietZone - 1)
  const light = '█'.repeat((lines[0]?.length ?? 0) + 2 * side.length)
  const above = new Array<string>(Math.ceil(quietZone / 2)).fill(light)
  // The last line of the library holds a light row already.
  const below = new Array<string>(Math.ceil((quietZone - 1) / 2)).fill(light)
  return [...above, ...lines.map((line) => side + line + side), ...below].map(
    (line) => `\u001b[${WHITE_ON_BLACK}m${line}${RESET}`,
  )
}

/** The library draws two spaces for each module, in the colors of the theme, with a border of one module. */
function toLargeLines(lines: readonly string[], quietZone: number): string[] {
  const module = `\u001b[${WHITE_ON}m  ${RESET}`
  const side = module.repeat(quietZone - 1)
  const drawn = lines.map(
    (line) => side + line.replaceAll('[40m', `[${BLACK_ON}m`).replaceAll('[47m', `[${WHITE_ON}m`) + side,
  )
  const border = new Array<string>(quietZone - 1).fill(drawn[0]?.replaceAll(BLACK_ON, WHITE_ON) ?? '')
  return [...border, ...drawn, ...border]
}

/** The size of a terminal in characters. */
export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/**
 * Returns the lines of a QR code that fit above a prompt of one line, with the widest border that fits; undefined if none
 * does.
 */
export async function renderFittingQrCode(
  text: string,
  { columns, rows }: TerminalSize,
): Promise<string[] | undefined> {
  for (const quietZone of [4, 3, 2]) {
    const lines = await renderQrCode(text, { quietZone })
    if (lines.length < rows && countColumns(lines[0] ?? '') <= columns) return lines
  }
  return undefined
}

/** Counts what a line of half blocks shows, without its colors. */
function countColumns(line: string): number {
  return line.replace(/[^ █▀▄]/g, '').length
}
