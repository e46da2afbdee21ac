// Turns what a terminal shows into pixels, as a camera sees them: colours, block characters, and other text as specks.
import type { Pixels } from './qr-code.ts'

type Color = readonly [red: number, green: number, blue: number]

/** The colours of a terminal that no escape sequence changes. */
export interface Theme {
  readonly foreground: Color
  readonly background: Color
}

const BLACK: Color = [0, 0, 0]
const WHITE: Color = [255, 255, 255]
/** Of a theme that replaces black and white, as many do. */
const THEMED: Readonly<Record<number, Color>> = { 40: [7, 54, 66], 47: [131, 148, 150] }

export const DARK: Theme = { foreground: [131, 148, 150], background: [0, 43, 54] }
export const LIGHT: Theme = { foreground: [101, 123, 131], background: [253, 246, 227] }

const CELL_WIDTH = 6
const CELL_HEIGHT = 12

interface Cell {
  readonly character: string
  readonly foreground: Color
  readonly background: Color
}

/** Draws the last `rows` lines of a screen. Movements of the cursor are skipped. */
export function drawScreen(screen: string, theme: Theme, { columns, rows }: { columns: number; rows: number }): Pixels {
  const lines = readCells(screen, theme)
    .slice(-rows)
    .map((cells) => cells.slice(0, columns))
  const width = columns * CELL_WIDTH
  const height = lines.length * CELL_HEIGHT
  const data = new Uint8Array(width * height * 4).fill(255)
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const cell = lines[Math.floor(y / CELL_HEIGHT)]?.[Math.floor(x / CELL_WIDTH)]
      data.set(cell ? colorAt(cell, x % CELL_WIDTH, y % CELL_HEIGHT) : theme.background, (y * width + x) * 4)
    }
  }
  return { width, height, data }
}

function colorAt({ character, foreground, background }: Cell, x: number, y: number): Color {
  const isUpper = y < CELL_HEIGHT / 2
  switch (character) {
    case ' ':
      return background
    case '█':
      return foreground
    case '▀':
      return isUpper ? foreground : background
    case '▄':
      return isUpper ? background : foreground
    default:
      return x > 0 && x < 5 && y > 3 && y < 9 && (x + y) % 2 === 0 ? foreground : background
  }
}

function readCells(screen: string, theme: Theme): Cell[][] {
  const lines: Cell[][] = [[]]
  let { foreground, background } = theme
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal acts on
  for (const [text, parameters, command] of screen.matchAll(/\u001b\[([0-9;?]*)([A-Za-z])|[\s\S]/gu)) {
    if (command === 'm') [foreground, background] = applyColors(parameters ?? '', theme, foreground, background)
    else if (text === '\n') lines.push([])
    else if (command === undefined && text !== '\r') lines.at(-1)?.push({ character: text, foreground, background })
  }
  return lines
}

function applyColors(parameters: string, theme: Theme, foreground: Color, background: Color): [Color, Color] {
  const codes = parameters.split(';').map(Number)
  let colors: [Color, Color] = [foreground, background]
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0
    if (code === 0) colors = [theme.foreground, theme.background]
    const isFixed = (code === 38 || code === 48) && codes[at + 1] === 5
    if (isFixed) {
      colors[code === 38 ? 0 : 1] = readFixedColor(codes[at + 2] ?? 0)
      at += 2
    }
    const themed = THEMED[code]
    if (themed) colors[1] = themed
  }
  return colors
}

/** The two colours of the fixed palette that QR codes are drawn with. */
function readFixedColor(index: number): Color {
  if (index === 16) return BLACK
  if (index === 231) return WHITE
  throw new Error(`this terminal does not know colour ${index}`)
}
