// Values as cells of tables.
import { expect, it } from 'vitest'
import { renderCell } from '../../commands/terminal/cells.ts'

const SCREEN = { isTerminal: false, width: 80, hasColor: false }

it('the routers of a controller are counted beyond the first ones', () => {
  const names = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7']
  expect(renderCell('routerNames', names, SCREEN)).toBe('r1, r2, r3, r4, r5, and 2 more')
  expect(renderCell('routerNames', names.slice(0, 5), SCREEN)).toBe('r1, r2, r3, r4, r5')
  expect(renderCell('roleAttributes', names, SCREEN)).toBe('r1, r2, r3, r4, r5, r6, r7')
})
