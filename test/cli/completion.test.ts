// Words that shells complete, asked for as they ask.
import { existsSync, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { BINARY, cleanEnvironment, controller, run } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { lacks } from '../world/machine.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  const { token } = await world.signIn({ isAdmin: true })
  await world.signIn({ name: 'laptop' })
  await world.signIn({ name: 'lap of honour' })
  env = cleanEnvironment()
  writeProfiles(env, { test: { url, rootPem, token }, 'other:4433': { url: 'https://other:4433', rootPem } })
})

/** The environment of a shell that finds the program. */
function onPath(): NodeJS.ProcessEnv {
  const bin = mkdtempSync(join(tmpdir(), 'bin-'))
  symlinkSync(BINARY, join(bin, 'controller'))
  return { ...env, PATH: `${bin}${delimiter}${env.PATH}` }
}

function isInstalled(shell: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, shell)))
}

async function completed(...words: string[]): Promise<string[]> {
  const { stdout, stderr } = await commandLine(['complete', '--', ...words], env)
  expect(stderr).toBe('')
  return stdout
    .split('\n')
    .flatMap((line) => line.split('\t')[0] ?? [])
    .filter(Boolean)
}

describe('the word after', () => {
  it.each<[string, string[], string[]]>([
    ['the program', ['ident'], ['identity', 'identity-type']],
    ['a topic', ['identity', 'cr'], ['create']],
    ['the plural of a topic', ['identities', 'cr'], ['create']],
    ['help', ['help', 'exit'], ['exit-codes']],
    ['a dash', ['identity', 'list', '--fi'], ['--filter']],
    ['a flag with words of its own', ['identity', 'list', '-o', 'js'], ['json', 'jsonl']],
    ['a flag that takes a type', ['identity', 'create', 'x', '--type', 'Dev'], ['Device']],
    ['a command that wants a record', ['identity', 'get', 'lap'], ['lap of honour', 'laptop']],
    ['a flag that wants a record', ['identity', 'create', 'x', '--auth-policy', 'Def'], ['Default']],
    ['--profile', ['identity', 'list', '--profile', 'te'], ['test']],
    ['a command that wants a word', ['completion', 'b'], ['bash']],
    ['what nothing follows', ['version', 'x'], []],
  ])('%s', async (_what, words, expected) => {
    // On a busy machine the controller may respond later than a shell waits.
    await expect.poll(() => completed(...words), { timeout: 30_000 }).toEqual(expected)
  })

  it('is nothing where the controller cannot be asked, without complaint', async () => {
    const { code, stdout, stderr } = await controller(['complete', '--', 'identity', 'get', 'l'], cleanEnvironment())

    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})

describe('the scripts', () => {
  /** Expects of what a shell prints. It runs again, because on a busy machine the controller may respond later than a shell waits. */
  function expectOutput(shell: string, ...args: string[]) {
    const shellEnv = onPath()
    return expect.poll(() => run(shell, args, shellEnv))
  }

  it('complete in bash, names with blanks included', async () => {
    const script = `source <(controller completion bash)
      COMP_WORDS=(controller identity get lap); COMP_CWORD=3; _controller; printf '%s\\n' "\${COMPREPLY[@]}"`

    await expectOutput('bash', '-c', script).toMatchObject({ stderr: '', stdout: 'lap\\ of\\ honour\nlaptop\n' })
  })

  it('complete in bash behind a colon, at which it takes words apart', async () => {
    const script = `source <(controller completion bash)
      COMP_WORDBREAKS=' :='
      COMP_WORDS=(controller profile use other : 44); COMP_CWORD=5; _controller; printf '%s\\n' "\${COMPREPLY[@]}"`

    const { stdout, stderr } = await run('bash', ['-c', script], onPath())

    expect(stderr).toBe('')
    expect(stdout).toBe('4433\n')
  })

  it.skipIf(lacks('zsh', isInstalled('zsh')))('complete in zsh, with what each word means', async () => {
    const script = `compdef() { }; _describe() { print -rl -- "\${(@P)2}" }
      source <(controller completion zsh)
      words=(controller identity get lap); CURRENT=4; _controller
      words=(controller profile us); CURRENT=3; _controller`

    const stdout = 'lap of honour:\nlaptop:\nuse:Makes a profile the current one.\n'
    await expectOutput('zsh', '-f', '-c', script).toMatchObject({ stderr: '', stdout })
  })

  it.skipIf(lacks('fish', isInstalled('fish')))('complete in fish', async () => {
    const script = "controller completion fish | source; complete -C 'controller identity get lap'"

    const stdout = expect.stringMatching(/^[\t ]*lap of honour[\t ]*\n[\t ]*laptop[\t ]*\n[\t ]*$/)
    await expectOutput('fish', '--no-config', '-c', script).toMatchObject({ stderr: '', stdout })
  })

  it('quote names for PowerShell, which would run a part of them', async () => {
    const { stdout } = await commandLine(['completion', 'powershell'], env)

    expect(stdout).toContain('EscapeSingleQuotedStringContent($name)')
    expect(stdout).toContain("CompletionResult]::new($typed, $name, 'ParameterValue', $text)")
  })

  it('are given no names that control a terminal', async () => {
    await world.signIn({ name: 'evil\u001b[2J' })

    await expect.poll(() => completed('identity', 'get', 'lap'), { timeout: 30_000 }).toContain('laptop')
    expect(await completed('identity', 'get', 'evil')).toEqual([])
  })

  it.each(['bash', 'zsh', 'fish', 'powershell'])('exist for %s', async (shell) => {
    const { code, stdout } = await commandLine(['completion', shell], env)

    expect(code).toBe(0)
    expect(stdout).toMatch(/controller complete .*--/)
  })
})
