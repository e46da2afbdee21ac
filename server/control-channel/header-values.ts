// Renders the values of message headers: numbers are little-endian, text has no terminator.

export function encodeBool(value: boolean): Buffer {
  return Buffer.from([value ? 1 : 0])
}

export function encodeInt32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeInt32LE(value)
  return bytes
}

export function encodeUint64(value: bigint): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}

export function encodeText(value: string): Buffer {
  return Buffer.from(value)
}
