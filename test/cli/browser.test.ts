// The program that opens an address in the browser of a machine.
import { describe, expect, it } from 'vitest'
import { findOpener } from '../../commands/terminal/browser.ts'

describe('the browser of a machine', () => {
  it.each<[NodeJS.Platform, NodeJS.ProcessEnv, readonly string[] | undefined]>([
    ['linux', {}, undefined],
    ['linux', { DISPLAY: ':0' }, ['xdg-open']],
    ['linux', { WAYLAND_DISPLAY: 'wayland-0' }, ['xdg-open']],
    ['darwin', {}, ['open']],
    ['win32', {}, ['rundll32', 'url.dll,FileProtocolHandler']],
  ])('on %s with %j is opened by %j', (platform, env, opener) => {
    expect(findOpener(platform, env)).toEqual(opener)
  })
})
