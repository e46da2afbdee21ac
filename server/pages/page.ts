// A page as a response: its document, its style, and headers that let a browser load and run nothing else.
import { createHash } from 'node:crypto'
import { CONTENT_HEADERS, type Response } from '../api/responses.ts'
import { Html, html } from './html.ts'
import { STYLE } from './style.ts'

export interface HtmlPage {
  readonly title: string
  readonly content: Html
  readonly status?: number
  /** Whether it says why the step before failed, which readers of screens learn by the title first. */
  readonly hasError?: boolean
  /** The addresses that a form of the page may lead to, besides those of the controller. Browsers check redirects by them, too. */
  readonly formTargets?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

const STYLE_HASH = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`

export function respondWithPage({
  title,
  content,
  status = 200,
  hasError = false,
  formTargets = [],
  headers = {},
}: HtmlPage): Response {
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${hasError ? `Error: ${title}` : title}</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`
  return {
    status,
    contentType: 'text/html; charset=utf-8',
    body: document.text,
    headers: { ...CONTENT_HEADERS, ...securityHeaders(formTargets), ...headers },
  }
}

function securityHeaders(formTargets: readonly string[]): Record<string, string> {
  const policy = {
    'default-src': "'none'",
    'style-src': STYLE_HASH,
    'form-action': ["'self'", ...formTargets].join(' '),
    'base-uri': "'none'",
    'frame-ancestors': "'none'",
  }
  return {
    'content-security-policy': Object.entries(policy)
      .map(([name, sources]) => `${name} ${sources}`)
      .join('; '),
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'cross-origin-opener-policy': 'same-origin',
  }
}

/** The sources of a content security policy for the address that a client is sent back to: none if no browser could go there. */
export function toFormTargets(redirectUri: string): readonly string[] {
  if (!URL.canParse(redirectUri)) return []
  const { protocol, origin } = new URL(redirectUri)
  return [protocol === 'https:' || protocol === 'http:' ? origin : protocol]
}
