// Makes one data directory for the whole run; each test works on a copy, because keys take long to make.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/foundation/clock.ts'
import { initializeDirectory } from '../../src/initialize.ts'
import { ADMIN, TEMPLATE_VARIABLE } from './controller.ts'

export default async function setup() {
  const directory = join(mkdtempSync(join(tmpdir(), 'controller-template-')), 'data')
  await initializeDirectory({ directory, settings: {}, clock: systemClock, administrator: ADMIN })
  process.env[TEMPLATE_VARIABLE] = directory
  return () => rmSync(directory, { recursive: true, force: true })
}
