// A login of the command line that waits for a browser: its address while it waits, and its end.
import { spawn } from 'node:child_process'
import { BINARY, type Finished } from './binary.ts'

export class SignInWithBrowser {
  /** The address that it prints. */
  readonly url: Promise<string>
  readonly finished: Promise<Finished>

  constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    const child = spawn(process.execPath, [BINARY, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
    })
    this.url = new Promise((resolve, reject) => {
      child.stderr.on('data', (chunk: Buffer) => {
        stderr += chunk.toString()
        const [, url] = /^ {2}(https:\S+)\n/m.exec(stderr) ?? []
        if (url) resolve(url)
      })
      child.on('close', () => reject(new Error(`no address was printed: ${stderr}`)))
    })
    // A test that expects a failure does not wait for the address.
    this.url.catch(() => undefined)
    this.finished = new Promise((resolve) => {
      child.on('close', (code) => resolve({ code, stdout, stderr }))
    })
  }
}
