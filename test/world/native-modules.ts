// Reads from a compiled module of Node.js which version of Node-API it needs, for any system, without loading it.

/** The function by which a module states its version. It only returns a constant. */
const VERSION_FUNCTION = 'node_api_module_get_api_version_v1'

/** The version that a module without that function needs, by the documentation of Node-API. */
const DEFAULT_VERSION = 8

/** The version of Node-API that a module needs. @throws if the module has an unknown form */
export function readNodeApiVersion(file: Buffer): number {
  if (!file.includes(VERSION_FUNCTION)) return DEFAULT_VERSION
  const magic = file.readUInt32BE(0)
  const position = magic === 0x7f454c46 ? findInElf(file) : magic === 0xcffaedfe ? findInMachO(file) : findInPe(file)
  return readConstant(file, position)
}

/** The constant that a function returns: the first instruction that loads one into the register of results. */
function readConstant(file: Buffer, position: number): number {
  // The lowest bit of an address says that a 32-bit ARM function uses the short instructions: movs r0, #constant.
  if (position % 2 === 1) {
    for (let at = position - 1; at < position + 16; at += 2) if (file[at + 1] === 0x20) return file[at] ?? 0
  }
  for (let at = position; at < position + 16; at += 1) {
    const word = file.readUInt32LE(at)
    if (file[at] === 0xb8) return file.readUInt32LE(at + 1) // x86: mov eax, constant
    if (at % 4 === 0 && (word & 0xffe0001f) >>> 0 === 0x52800000) return (word >>> 5) & 0xffff // ARM64: mov w0, constant
    if (at % 4 === 0 && (word & 0xffffff00) >>> 0 === 0xe3a00000) return word & 0xff // ARM: mov r0, constant
  }
  throw new Error(`the code of ${VERSION_FUNCTION} has an unknown form`)
}

interface Section {
  readonly type: number
  readonly address: number
  readonly offset: number
  readonly size: number
  readonly link: number
}

function findInElf(file: Buffer): number {
  const is64 = file[4] === 2
  const long = (at: number) => (is64 ? Number(file.readBigUInt64LE(at)) : file.readUInt32LE(at))
  const [table, entrySize, count] = is64
    ? [long(0x28), file.readUInt16LE(0x3a), file.readUInt16LE(0x3c)]
    : [long(0x20), file.readUInt16LE(0x2e), file.readUInt16LE(0x30)]
  const sections = Array.from({ length: count }, (_, n): Section => {
    const at = table + n * entrySize
    const field = (index: number) => (is64 ? long(at + 8 + index * 8) : long(at + 8 + index * 4))
    const link = file.readUInt32LE(at + (is64 ? 0x28 : 0x18))
    return { type: file.readUInt32LE(at + 4), address: field(1), offset: field(2), size: field(3), link }
  })
  const DYNAMIC_SYMBOLS = 11
  const symbols = sections.find(({ type }) => type === DYNAMIC_SYMBOLS)!
  const names = sections[symbols.link]!
  const symbolSize = is64 ? 24 : 16
  for (let at = symbols.offset; at < symbols.offset + symbols.size; at += symbolSize) {
    if (readName(file, names.offset + file.readUInt32LE(at)) !== VERSION_FUNCTION) continue
    const address = long(at + (is64 ? 8 : 4))
    const code = sections.find((section) => address >= section.address && address < section.address + section.size)!
    return address - code.address + code.offset
  }
  throw new Error(`${VERSION_FUNCTION} is not exported`)
}

function findInMachO(file: Buffer): number {
  const [SEGMENT, SYMBOL_TABLE] = [0x19, 0x02]
  const segments: Section[] = []
  for (let at = 32, n = 0; n < file.readUInt32LE(16); n += 1, at += file.readUInt32LE(at + 4)) {
    const type = file.readUInt32LE(at)
    if (type === SEGMENT) {
      const [address, , offset, size] = [24, 32, 40, 48].map((field) => Number(file.readBigUInt64LE(at + field)))
      segments.push({ type, address: address!, offset: offset!, size: size!, link: 0 })
    }
    if (type !== SYMBOL_TABLE) continue
    const [symbols, count, names] = [8, 12, 16].map((field) => file.readUInt32LE(at + field))
    for (let symbol = symbols!; symbol < symbols! + count! * 16; symbol += 16) {
      if (readName(file, names! + file.readUInt32LE(symbol)) !== `_${VERSION_FUNCTION}`) continue
      const address = Number(file.readBigUInt64LE(symbol + 8))
      const segment = segments.find((each) => address >= each.address && address < each.address + each.size)!
      return address - segment.address + segment.offset
    }
  }
  throw new Error(`${VERSION_FUNCTION} is not exported`)
}

function findInPe(file: Buffer): number {
  const header = file.readUInt32LE(0x3c) + 4
  const sections = header + 20 + file.readUInt16LE(header + 16)
  const toPosition = (address: number): number => {
    for (let n = 0; n < file.readUInt16LE(header + 2); n += 1) {
      const [size, start, , offset] = [8, 12, 16, 20].map((field) => file.readUInt32LE(sections + n * 40 + field))
      if (address >= start! && address < start! + size!) return address - start! + offset!
    }
    throw new Error(`no section holds the address ${address}`)
  }
  const exported = toPosition(file.readUInt32LE(header + 20 + 112))
  const [functions, names, ordinals] = [28, 32, 36].map((field) => toPosition(file.readUInt32LE(exported + field)))
  for (let n = 0; n < file.readUInt32LE(exported + 24); n += 1) {
    if (readName(file, toPosition(file.readUInt32LE(names! + n * 4))) !== VERSION_FUNCTION) continue
    return toPosition(file.readUInt32LE(functions! + file.readUInt16LE(ordinals! + n * 2) * 4))
  }
  throw new Error(`${VERSION_FUNCTION} is not exported`)
}

function readName(file: Buffer, at: number): string {
  return file.toString('latin1', at, file.indexOf(0, at))
}
