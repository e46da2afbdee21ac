// A console in a real browser: at the origin of the controller, and at another one that the settings allow or do not.
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ADMIN, type TestController, testController } from '../world/controller.ts'
import { findChromium, openChromium } from './chromium.ts'

const DIRECTORY = join(import.meta.dirname, 'page')
const executablePath = findChromium()
const reason = executablePath ? '' : ' (skipped: there is no Chromium in PATH, and CHROMIUM_PATH is not set)'

describe.skipIf(!executablePath)(`a console in Chromium${reason}`, () => {
  let world: TestController
  let browser: Browser
  let url: string
  let sites: Server[]
  let listedSite: string
  let otherSite: string

  beforeAll(async () => {
    sites = [await openSite(), await openSite()]
    const [listed, other] = sites.map((site) => `http://127.0.0.1:${(site.address() as AddressInfo).port}`)
    listedSite = listed as string
    otherSite = other as string
    world = await testController({ settings: { 'console.directory': DIRECTORY, 'cors.origins': [listedSite] } })
    url = (await world.listen()).url
    browser = await openChromium(executablePath as string, world.controller.authority.server.certificate)
  })
  afterAll(async () => {
    await browser?.close()
    for (const site of sites) site.close()
    await world?.close()
  })

  async function openPage(address: string): Promise<{ page: Page; violations: string[] }> {
    const page = await browser.newPage()
    const violations: string[] = []
    page.on('console', (message) => {
      if (/Content Security Policy|CORS policy/.test(message.text())) violations.push(message.text())
    })
    await page.goto(address)
    return { page, violations }
  }

  async function signIn(page: Page, password: string = ADMIN.password): Promise<string | null> {
    await page.getByLabel('Username').fill(ADMIN.username)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button').click()
    await expect.poll(() => page.getByRole('status').textContent(), { timeout: 20_000 }).not.toBe('')
    return page.getByRole('status').textContent()
  }

  async function listServices(page: Page): Promise<string[]> {
    return page.getByRole('listitem').allTextContents()
  }

  async function deleteServices(): Promise<void> {
    const token = await world.admin()
    const path = '/edge/management/v1/services'
    const { body } = await world.send({ method: 'GET', path, token })
    for (const { id } of body.data) await world.send({ method: 'DELETE', path: `${path}/${id}`, token })
  }

  it('at /zac/ signs in, creates and lists, under its content security policy', async () => {
    const { page, violations } = await openPage(`${url}/zac/`)

    expect(await signIn(page)).toBe('done')
    expect(await listServices(page)).toEqual(['made-in-a-browser'])
    expect(violations).toEqual([])
    // Inline scripts that build tools put into a page run.
    expect(await page.evaluate('document.documentElement.dataset.inline')).toBe('ran')
    const color = "getComputedStyle(document.querySelector('[role=status]')).color"
    expect(await page.evaluate(color)).toBe('rgb(1, 2, 3)')
    await deleteServices()
  })

  it('at /zac/ shows why a sign-in failed', async () => {
    const { page } = await openPage(`${url}/zac/`)

    expect(await signIn(page, 'wrong password')).toBe('failed: INVALID_AUTH')
  })

  it('lets its own scripts compile functions, as they do to validate the data of a config by its JSON schema', async () => {
    const { page, violations } = await openPage(`${url}/zac/`)

    await expect.poll(() => page.evaluate('document.documentElement.dataset.compiled')).toBe('true')
    expect(violations).toEqual([])
  })

  it('runs no script that was put into its page, and sends nothing elsewhere', async () => {
    const { page, violations } = await openPage(`${url}/zac/services`)
    await page.evaluate(`
      document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.injected = true' }))
      fetch('${otherSite}/').catch(() => {})
    `)

    await expect.poll(() => violations.length).toBeGreaterThanOrEqual(2)
    expect(await page.evaluate('window.injected')).toBeUndefined()
  })

  it('at a listed origin signs in, creates and lists', async () => {
    const { page, violations } = await openPage(`${listedSite}/?api=${url}`)

    expect(await signIn(page)).toBe('done')
    expect(await listServices(page)).toEqual(['made-in-a-browser'])
    expect(violations).toEqual([])
    await deleteServices()
  })

  it('at any other origin is kept out by the browser', async () => {
    const { page, violations } = await openPage(`${otherSite}/?api=${url}`)

    expect(await signIn(page)).toBe('failed: Failed to fetch')
    expect(violations.length).toBeGreaterThan(0)
  })
})

/** A web server with the same page at another origin. */
function openSite(): Promise<Server> {
  const types: Record<string, string> = { html: 'text/html', css: 'text/css', js: 'text/javascript' }
  const site = createServer((request, response) => {
    const name = (request.url ?? '/').split('?')[0]?.slice(1) || 'index.html'
    const type = types[name.split('.').at(-1) ?? '']
    if (!type) response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': type }).end(readFileSync(join(DIRECTORY, name)))
  })
  return new Promise((resolve) => site.listen(0, '127.0.0.1', () => resolve(site)))
}
