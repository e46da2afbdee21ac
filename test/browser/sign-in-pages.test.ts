// The pages of a sign-in in a real browser: by keyboard alone, in light and dark, under their content security policy.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { type TestController, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { findChromium, openChromium } from './chromium.ts'

const executablePath = findChromium()
const reason = executablePath ? '' : ' (skipped: there is no Chromium in PATH, and CHROMIUM_PATH is not set)'

describe.skipIf(!executablePath)(`the pages of a sign-in in Chromium${reason}`, () => {
  let world: TestController
  let people: People
  let browser: Browser
  let url: string
  /** The program that the browser comes back to, and the addresses at which it did. */
  let program: Server
  const callbacks: string[] = []

  beforeAll(async () => {
    program = createServer((request, response) => {
      callbacks.push(request.url ?? '')
      response.end('back')
    })
    await new Promise<void>((resolve) => {
      program.listen(0, '127.0.0.1', resolve)
    })
    const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'oidc'], dialect: 'native' }]
    world = await testController({ settings: { listeners } })
    people = await People.in(world)
    url = (await world.listen()).url
    browser = await openChromium(executablePath as string, world.controller.authority.server.certificate)
  })
  afterAll(async () => {
    await browser?.close()
    program?.close()
    await world?.close()
  })

  async function begin(colorScheme: 'light' | 'dark' = 'light'): Promise<{ page: Page; violations: string[] }> {
    const page = await browser.newPage({ colorScheme })
    const violations: string[] = []
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) violations.push(message.text())
    })
    const parameters = new URLSearchParams({
      client_id: 'native',
      response_type: 'code',
      scope: 'openid',
      redirect_uri: `http://127.0.0.1:${(program.address() as AddressInfo).port}/auth/callback`,
      state: 'the-state',
      code_challenge: 'a'.repeat(43),
      code_challenge_method: 'S256',
    })
    await page.goto(`${url}/oidc/authorize?${parameters}`)
    return { page, violations }
  }

  /** Waits until the page has given the focus to a field, which it does only when it is first drawn: keys pressed before are lost. */
  const waitForFocus = (page: Page) => page.locator('input:focus').waitFor()

  async function signIn(page: Page, username: string, password: string): Promise<void> {
    await waitForFocus(page)
    await page.keyboard.type(username)
    await page.keyboard.press('Tab')
    await page.keyboard.type(password)
    await page.keyboard.press('Enter')
  }

  it('take a name and a password by keyboard alone, and lead back to the program', async () => {
    const { username, password } = await people.person()
    const { page, violations } = await begin()
    await signIn(page, username, 'wrong')
    await page.getByRole('alert').waitFor()
    expect(await page.title()).toBe('Error: Sign in')
    // The name is there still, and the password has the focus.
    await waitForFocus(page)
    await page.keyboard.type(password)
    await page.keyboard.press('Enter')
    await page.waitForURL(/127\.0\.0\.1.*\/auth\/callback/)
    expect(callbacks.at(-1)).toMatch(/^\/auth\/callback\?code=[^&]+&state=the-state$/)
    expect(violations).toEqual([])
    await page.close()
  })

  it('set up a second factor, and show its QR code whole', async () => {
    const authPolicyId = await people.policy({ requireTotp: true })
    const { username, password } = await people.person({ authPolicyId })
    const { page, violations } = await begin()
    await signIn(page, username, password)
    await page.getByRole('button', { name: 'Set it up' }).press('Enter')
    const qrCode = page.getByRole('img', { name: /QR code/ })
    const { width = 0, height = 0 } = (await qrCode.locator('svg').boundingBox()) ?? {}
    expect(Math.min(width, height)).toBeGreaterThan(150)
    const secret = (await page.locator('code').first().innerText()).replaceAll(' ', '')
    world.clock.advance(STEP_MS)
    await page
      .getByLabel('Code', { exact: true })
      .fill(new AuthenticatorApp(`otpauth://totp/x?secret=${secret}`).code(world.clock.now()))
    await page.keyboard.press('Enter')
    await page.waitForURL(/127\.0\.0\.1.*\/auth\/callback/)
    expect(violations).toEqual([])
    await page.close()
  })

  it('are light or dark as the browser prefers', async () => {
    const backgrounds: string[] = []
    for (const scheme of ['light', 'dark'] as const) {
      const { page } = await begin(scheme)
      backgrounds.push(
        await page
          .locator('body')
          .evaluate((body) => body.ownerDocument.defaultView?.getComputedStyle(body).backgroundColor ?? ''),
      )
      await page.close()
    }
    expect(backgrounds).toEqual(['rgb(242, 244, 247)', 'rgb(18, 22, 28)'])
  })
})
