// `controller top`: the figures of a controller, once for scripts and drawn again on a terminal.
import { beforeEach, describe, expect, it } from 'vitest'
import { applyKey } from '../../commands/administration/top/keys.ts'
import { Observations } from '../../commands/administration/top/observations.ts'
import { renderTopTable, type TopChoices } from '../../commands/administration/top/render.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'
import { onTerminal, plainText } from '../world/terminal.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let env: NodeJS.ProcessEnv
let address: { readonly url: string; readonly rootPem: string } | undefined
beforeEach(async () => {
  address ??= await world.listen()
  const { url, rootPem } = address
  env = cleanEnvironment()
  writeProfiles(env, { here: { url, rootPem, token: await world.admin() } })
})

describe('top', () => {
  it('prints the figures once as plain text for scripts', async () => {
    const { code, stdout } = await commandLine(['top', '-n', '1', '--table', 'records', '--filter', 'identit'], env)

    expect(code).toBe(0)
    expect(stdout).toMatch(/^network {5}0 of 0 routers online, 0 links, 0 circuits, 0 terminators$/m)
    expect(stdout).toMatch(/^sessions {4}[1-9]\d* API sessions, 0 for services$/m)
    expect(stdout).toMatch(/^checks {6}.*database ok/m)
    expect(stdout).toMatch(/^RECORDS +COUNT\nidentities +\d+$/m)
    expect(stdout).not.toContain('\u001b')
  })

  it('draws a screen as large as the terminal, and restores the terminal when the user quits', async () => {
    const { code, screen } = await onTerminal(['top'], env, { columns: 80, rows: 24, inputs: [['q quit', 'q']] })

    expect(code).toBe(0)
    expect(screen).toContain('\u001b[?1049h')
    expect(screen.trimEnd().endsWith('\u001b[?25h\u001b[?1049l')).toBe(true)
    for (const line of plainText(screen).split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  })

  it('shows its keys and some rows also in a small terminal', async () => {
    const { screen } = await onTerminal(['top'], env, { columns: 40, rows: 10, inputs: [['q quit', 'q']] })

    const lines = plainText(screen).split('\n')
    expect(lines.filter((line) => /^q quit {2}s sort/.test(line))).not.toEqual([])
    expect(lines.filter((line) => /^ROUTER↑/.test(line))).not.toEqual([])
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(40)
  })

  it('needs a terminal unless it prints plain text', async () => {
    const { code, stderr } = await commandLine(['top'], env)
    expect([code, stderr]).toEqual([2, expect.stringContaining('-n 1')])
  })

  it('is for administrators', async () => {
    const { token } = await world.signIn()
    const { status } = await world.send({ method: 'GET', path: `${MANAGEMENT}/controller/metrics`, token })
    expect(status).toBe(401)
  })
})

const choices: TopChoices = { view: 'reasons', sortColumn: 0, isAscending: true, filter: '' }
const press = (keys: string, from = { choices, isTyping: false }) =>
  [...keys].reduce((state, key) => {
    const next = applyKey(state.choices, key, state.isTyping, 3)
    if (next === 'quit') throw new Error('quit')
    return next
  }, from)

describe('the table of top', () => {
  const observations = new Observations()
  const refused = (reason: string, count: number) =>
    observations.countEvent({
      type: 'sign-in-refused',
      cursor: '',
      data: JSON.stringify({ audit: { reason, method: 'password', count } }),
    })
  refused('WRONG_PASSWORD', 3)
  refused('UNKNOWN_IDENTITY', 1)
  refused('WRONG_PASSWORD', 4)
  observations.countEvent({ type: 'circuit-failed', cursor: '', data: '{"cause":"NO_TERMINATORS"}' })

  it('counts refusals and failed dials by their reasons, sorted by a column that keys choose', () => {
    const lines = renderTopTable(observations, press('ss').choices, 80, 10)
    expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
      ['EVENT', 'REASON', 'COUNT'],
      ['sign-in-refused', 'WRONG_PASSWORD', '7'],
      ['circuit-failed', 'NO_TERMINATORS', '1'],
      ['sign-in-refused', 'UNKNOWN_IDENTITY', '1'],
    ])
  })

  it('marks the column that rows are sorted by', () => {
    const [first] = renderTopTable(observations, press('ssr').choices, 80, 10, true)
    expect(first?.split(/ {2,}/)).toEqual(['EVENT', 'REASON', 'COUNT↑'])
  })

  it('shows the rows that contain what was typed', () => {
    const typed = press('/wrong\r')
    expect([typed.choices.filter, typed.isTyping]).toEqual(['wrong', false])
    expect(renderTopTable(observations, typed.choices, 80, 10)).toHaveLength(2)
  })

  it('ends by q, but not while a filter is typed', () => {
    expect(applyKey(choices, 'q', false, 3)).toBe('quit')
    expect(press('/q').choices.filter).toBe('q')
    expect(applyKey(choices, '\u0003', true, 3)).toBe('quit')
  })
})
