// Opens an address in the browser of this machine, if it has one.

/** The program that opens an address, with its arguments; undefined if nothing shows that there is a browser. */
export function findOpener(
  platform: NodeJS.Platform,
  env: NodeJS.ProcessEnv,
): readonly [command: string, ...args: string[]] | undefined {
  if (platform === 'darwin') return ['open']
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  return env.DISPLAY || env.WAYLAND_DISPLAY ? ['xdg-open'] : undefined
}

/** Opens the address unless no person is at a terminal of this machine. Failures are ignored, because the address was printed. */
export async function openBrowser(url: string): Promise<void> {
  const opener = process.stderr.isTTY ? findOpener(process.platform, process.env) : undefined
  if (!opener || process.env.SSH_CONNECTION) return
  const { spawn } = await import('node:child_process')
  const [command, ...args] = opener
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' })
  child.on('error', () => undefined)
  child.unref()
}
