// What the system says of a process, read from outside (proc(5)): the process that is measured carries no measuring code.
import { existsSync, readFileSync } from 'node:fs'

// The unit of the times in /proc, 1/100 s on every Linux, whatever the kernel's own tick is.
const MICROSECONDS_A_TICK = 10_000

export const canReadProcesses = existsSync('/proc/self/stat')

/** User and system time of all threads of a process, microseconds. */
export function cpuMicroseconds(pid: number): number {
  const [own, system] = times(pid)
  return (own + system) * MICROSECONDS_A_TICK
}

/** The same of this process and of all those it started that have ended. */
export function ownMicroseconds(): number {
  return times(process.pid).reduce((sum, time) => sum + time) * MICROSECONDS_A_TICK
}

/** User and system time of a process, then of its children that have ended; in ticks. */
function times(pid: number): [number, number, number, number] {
  // The name of the program, in parentheses, may hold anything.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return fields.slice(11, 15).map(Number) as [number, number, number, number]
}

/** What all cores together have spent on anything but waiting, microseconds. */
export function machineMicroseconds(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  // user, nice, system, idle, iowait, irq, softirq, steal; what comes after is part of the first two.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line.split(/ +/).slice(1).map(Number)
  return (user + nice + system + irq + softirq + steal) * MICROSECONDS_A_TICK
}

/** Resident memory of a process, bytes. */
export function residentBytes(pid: number): number {
  const [, kibibytes = Number.NaN] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1024
}
