// A browser without scripts, as tests use one: it keeps cookies, follows redirects, and submits forms.
import { requestOverTls } from './endpoints.ts'

export interface Page {
  readonly url: string
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

const MAX_REDIRECTS = 10

interface BrowserCertificate {
  readonly cert?: string
  readonly key?: string
}

export class Browser {
  readonly #cookies = new Map<string, string>()
  readonly #rootPem: string | undefined
  readonly #certificate: BrowserCertificate

  /**
   * @param rootPem the root of the servers that it opens; by default the authority of endpoints of others
   * @param certificate the certificate that it presents
   */
  constructor(rootPem?: string, certificate: BrowserCertificate = {}) {
    this.#rootPem = rootPem
    this.#certificate = certificate
  }

  open(url: string): Promise<Page> {
    return this.#load(url, undefined)
  }

  openWithoutRedirects(url: string): Promise<Page> {
    return this.#request(url, undefined)
  }

  /** Submits the first form of a page with its hidden inputs, and these. */
  submit(page: Page, inputs: Readonly<Record<string, string>> = {}): Promise<Page> {
    const [, attributes = '', content = ''] = /<form([^>]*)>([\s\S]*?)<\/form>/.exec(page.text) ?? []
    const hidden = Array.from(content.matchAll(/<input[^>]*type="hidden"[^>]*>/g), ([input]): [string, string] => [
      readAttribute(input, 'name'),
      readAttribute(input, 'value'),
    ])
    const body = new URLSearchParams({ ...Object.fromEntries(hidden), ...inputs }).toString()
    const action = readAttribute(attributes, 'action')
    return this.#load(new URL(action, page.url).href, body)
  }

  async #load(start: string, form: string | undefined): Promise<Page> {
    let [url, body] = [start, form]
    for (let redirects = 0; redirects < MAX_REDIRECTS; redirects++) {
      const page = await this.#request(url, body)
      const { location } = page.headers
      if (page.status < 300 || page.status >= 400 || typeof location !== 'string') return page
      url = new URL(location, url).href
      body = undefined
    }
    throw new Error(`more than ${MAX_REDIRECTS} redirects from ${start}`)
  }

  async #request(url: string, body: string | undefined): Promise<Page> {
    const headers = {
      accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
      ...(this.#cookies.size > 0
        ? { cookie: Array.from(this.#cookies, ([name, value]) => `${name}=${value}`).join('; ') }
        : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
    }
    const method = body === undefined ? 'GET' : 'POST'
    // The browser has left for the client, which this test has none of.
    if (/^(?:[a-z]+:\/\/[\w.-]+\.example\.com|openziti:)/.test(url)) return { url, status: 0, headers: {}, text: '' }
    if (url.startsWith('http://')) {
      const response = await fetch(url, { method, headers, redirect: 'manual' })
      return {
        url,
        status: response.status,
        headers: Object.fromEntries(response.headers),
        text: await response.text(),
      }
    }
    const rootPem = this.#rootPem === undefined ? {} : { rootPem: this.#rootPem }
    const response = await requestOverTls(url, {
      ...{ method, headers, ...rootPem, ...this.#certificate },
      ...(body === undefined ? {} : { body }),
    })
    for (const cookie of response.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      this.#cookies.set(name, value)
    }
    return { url, ...response }
  }
}

function readAttribute(tag: string, name: string): string {
  const [, value = ''] = new RegExp(`\\b${name}="([^"]*)"`).exec(tag) ?? []
  return value.replaceAll('&#39;', "'").replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&')
}
