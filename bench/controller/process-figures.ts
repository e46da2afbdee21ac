// The figures of the system about a process, read from outside (proc(5)): the process that is measured carries no measuring code.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

// The unit of the times in /proc, 1/100 s on every Linux, whatever the kernel's own tick is.
const MICROSECONDS_A_TICK = 10_000

export const canReadProcesses = existsSync('/proc/self/schedstat')

/**
 * User and system time of all threads of a process that have not ended, microseconds. The scheduler counts nanoseconds, so
 * that a quarter of a second can be measured.
 */
export function cpuMicroseconds(pid: number): number {
  const directory = `/proc/${pid}/task`
  const nanoseconds = readdirSync(directory).map((thread) => threadNanoseconds(`${directory}/${thread}/schedstat`))
  return nanoseconds.reduce((sum, time) => sum + time, 0) / 1_000
}

function threadNanoseconds(file: string): number {
  try {
    return Number.parseInt(readFileSync(file, 'utf8'), 10)
  } catch (error) {
    // It ended meanwhile.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return 0
    throw error
  }
}

/** User and system time of this process, and of all those it started that have ended, microseconds. */
export function ownMicroseconds(): number {
  // The name of the program, in parentheses, may hold anything.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * MICROSECONDS_A_TICK
}

/** The time that all cores together have spent on anything but waiting, microseconds. */
export function machineMicroseconds(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  // user, nice, system, idle, iowait, irq, softirq, steal; what comes after is part of the first two.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line.split(/ +/).slice(1).map(Number)
  return (user + nice + system + irq + softirq + steal) * MICROSECONDS_A_TICK
}

/** The most that the resident memory of a process was, bytes. */
export function peakBytes(pid: number): number {
  const [, kibibytes = 0] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1024
}

/** The number of files and connections that this process may open, and each that it starts. Node.js takes all that it is granted. */
export function maxDescriptors(): number {
  const [, most = 'unlimited'] = /^Max open files +\S+ +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return most === 'unlimited' ? Number.POSITIVE_INFINITY : Number(most)
}

/** The number of files and connections that a process has open. */
export function countDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Resident memory of a process, bytes. */
export function residentBytes(pid: number): number {
  const [, kibibytes = Number.NaN] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1024
}
