// `controller top`: one screen of what a controller and its network do, drawn again every few seconds.
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Flags } from '@oclif/core'
import type { EventType } from '../../src/definitions/resources/event-types.ts'
import type { Client } from '../client/client.ts'
import { readServerEvents } from '../client/event-stream.ts'
import { isPassing } from '../client/passing-errors.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { assertOutput } from '../foundation/flag-values.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { hasColors } from '../terminal/colors.ts'
import { FullScreen } from '../terminal/full-screen.ts'
import { applyKey } from './top/keys.ts'
import { Observations } from './top/observations.ts'
import {
  countColumns,
  renderFigures,
  renderTopTable,
  type Surroundings,
  type TopChoices,
  type View,
  views,
} from './top/render.ts'

const MAX_RETRY_MS = 5_000
const PLAIN_COLUMNS = 200
const MAX_PLAIN_LINES = 1_000
const MIN_TABLE_LINES = 4

/** The types of events that are counted. */
const COUNTED: readonly EventType[] = ['circuit-begun', 'circuit-failed', 'circuit-ended', 'sign-in', 'sign-in-refused']

export const top = defineConnectedCommand({
  summary: 'Shows what a controller and its network do, on one screen that is drawn again every few seconds.',
  description:
    'Keys: q quits; 1 to 4 and Tab choose the table; s sorts by the next column, r reverses the order; / filters rows, Enter ends the filter. With -n the figures are printed as plain text, for scripts.',
  flags: {
    iterations: Flags.integer({
      char: 'n',
      min: 1,
      description: 'Print the figures as plain text so many times, and end.',
    }),
    every: Flags.integer({ min: 1, max: 3600, default: 2, description: 'How many seconds pass in between.' }),
    table: Flags.option({ options: views, default: 'routers' as View, description: 'The table below the figures.' })(),
    filter: Flags.string({ default: '', description: 'Only rows of the table that contain this text.' }),
  },
  example: '-n 1',
  async run({ client, flags, print }) {
    assertOutput(flags.output, 'top', 'text')
    const observations = new Observations()
    const everyMs = (flags.every as number) * 1_000
    const choices: TopChoices = {
      view: flags.table as View,
      sortColumn: 0,
      isAscending: true,
      filter: flags.filter as string,
    }
    const stopped = new AbortController()
    void countEvents(client, observations, stopped.signal)
    try {
      if (flags.iterations === undefined) await runOnScreen(client, observations, choices, everyMs)
      else {
        const renderAll = () =>
          renderPlain(client, observations, choices, { everyMs, iterations: flags.iterations as number })
        await print({ kind: 'pieces', pieces: renderAll() })
      }
    } finally {
      stopped.abort()
    }
  },
})

async function* renderPlain(
  client: Client,
  observations: Observations,
  choices: TopChoices,
  { everyMs, iterations }: { readonly everyMs: number; readonly iterations: number },
): AsyncGenerator<string> {
  const surroundings = { target: client.target, hasColors: false, columns: PLAIN_COLUMNS }
  for (let n = 0; n < iterations; n++) {
    if (n > 0) await delay(everyMs)
    await observations.read(client)
    const table = renderTopTable(observations, choices, PLAIN_COLUMNS, MAX_PLAIN_LINES)
    yield `${[...renderFigures(observations, surroundings), '', ...table].join('\n')}\n${n < iterations - 1 ? '\n' : ''}`
  }
}

/** Draws until the user quits. @throws RequestError, UnreachableError if the first look fails, or the right has ended */
async function runOnScreen(
  client: Client,
  observations: Observations,
  initial: TopChoices,
  everyMs: number,
): Promise<void> {
  if (!process.stdout.isTTY || !process.stdin.isTTY)
    throw makeUsageError('top needs a terminal', { field: 'iterations', hint: '-n 1 prints the figures once' })
  await observations.read(client)
  let choices = initial
  let isTyping = false
  let problem: string | undefined
  const quit = new AbortController()
  const quitting = once(quit.signal, 'abort')
  const draw = () => {
    const { columns, rows } = screen.size
    const surroundings: Surroundings = { target: client.target, problem, hasColors: hasColors(process.stdout), columns }
    const controls = ['', ...describeChoices(choices, isTyping, columns)]
    // In a small terminal the first figures only, so that the keys and some rows are visible.
    const figureCount = Math.max(rows - controls.length - MIN_TABLE_LINES, 1)
    const lines = [...renderFigures(observations, surroundings).slice(0, figureCount), ...controls]
    screen.draw([...lines, ...renderTopTable(observations, choices, columns, rows - lines.length, true)])
  }
  const screen = new FullScreen(
    (key) => {
      const next = applyKey(choices, key, isTyping, countColumns(observations, choices.view))
      if (next === 'quit') return quit.abort()
      isTyping = next.isTyping
      choices = next.choices
      draw()
    },
    () => draw(),
  )
  screen.open()
  try {
    while (!quit.signal.aborted) {
      draw()
      await delay(everyMs, undefined, { signal: quit.signal }).catch(() => {})
      if (quit.signal.aborted) return
      try {
        await Promise.race([observations.read(client), quitting])
        problem = undefined
      } catch (error) {
        if (!isPassing(error)) throw error
        problem = `no response since ${observations.at?.slice(11, 19)} UTC: ${(error as Error).message}`
      }
    }
  } finally {
    screen.close()
  }
}

/** The tables and keys, on one line if they fit. */
function describeChoices({ view, filter }: TopChoices, isTyping: boolean, columns: number): string[] {
  if (isTyping) return [`filter: ${filter}_`.slice(0, columns)]
  const names = views.map((name, at) => (name === view ? `[${at + 1} ${name}]` : ` ${at + 1} ${name} `)).join('')
  const keys = `q quit  s sort  r reverse  / filter${filter === '' ? '' : ` "${filter}"`}`
  const line = `${names}  ${keys}`
  return (line.length <= columns ? [line] : [names, keys]).map((text) => text.slice(0, columns))
}

/** Counts events from now on, over lost connections. The figures are shown also if events cannot be watched. */
async function countEvents(client: Client, observations: Observations, signal: AbortSignal): Promise<void> {
  let cursor = ''
  while (!signal.aborted) {
    try {
      const since = cursor === '' ? '' : `&since=${cursor}`
      const path = `/controller/events?${COUNTED.map((type) => `type=${type}`).join('&')}${since}`
      for await (const event of readServerEvents(await client.stream('GET', path))) {
        cursor = event.cursor
        observations.countEvent(event)
      }
    } catch {
      // The next look at the metrics says what is wrong.
    }
    await delay(MAX_RETRY_MS, undefined, { signal, ref: false }).catch(() => {})
  }
}
