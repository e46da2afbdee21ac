// What the system says of a process, read from outside (proc(5)): the process that is measured carries no measuring code.
import { existsSync, readFileSync } from 'node:fs'

// The unit of the times in /proc, 1/100 s on every Linux, whatever the kernel's own tick is.
const MICROSECONDS_A_TICK = 10_000

export const canReadProcesses = existsSync('/proc/self/stat')

/** User and system time of all threads of a process, microseconds. */
export function cpuMicroseconds(pid: number): number {
  // The name of the program, in parentheses, may hold anything.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * MICROSECONDS_A_TICK
}

/** Resident memory of a process, bytes. */
export function residentBytes(pid: number): number {
  const [, kibibytes = Number.NaN] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1024
}
