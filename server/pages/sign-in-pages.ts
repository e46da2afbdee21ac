// The pages on which a person signs in with a browser, in the order in which they appear.
import { anyUsernameLength, passwordLength } from '../../src/definitions/resources/authenticators.ts'
import { Html, html } from './html.ts'
import type { HtmlPage } from './page.ts'

/** The sign-in that a page belongs to. */
export interface SignInView {
  readonly requestId: string
  /** The host of the controller, as the browser reached it. */
  readonly host: string
  /** The place that the browser goes to after the sign-in, in words. */
  readonly destination: string
  readonly formTargets: readonly string[]
  /** The reason why the step before failed, in words. */
  readonly error?: string | undefined
}

/** A signer at whose issuer people sign in. */
export interface SignerChoice {
  readonly id: string
  readonly name: string
}

export interface Choices {
  /** The common name of the certificate that the browser presents, if it presents one. */
  readonly certificateName: string | undefined
  readonly signers: readonly SignerChoice[]
}

const hiddenId = (requestId: string) => html`<input type="hidden" name="id" value="${requestId}">`

/** Read aloud when the page appears, because it tells what went wrong. */
const errorText = (error: string | undefined) =>
  error === undefined ? undefined : html`<p class="error" role="alert" id="error">${error}</p>`

const describedByError = (error: string | undefined) =>
  error === undefined ? undefined : new Html(' aria-describedby="error" aria-invalid="true"')

function makePage(title: string, { formTargets, error }: SignInView, content: Html): HtmlPage {
  return { title, hasError: error !== undefined, formTargets, content }
}

const introduction = ({ host, destination }: SignInView) =>
  html`<p class="faint">You sign in to <strong>${host}</strong>. Then you return to ${destination}.</p>`

/** Name and password, and what else the browser can sign in with. */
export function passwordPage(view: SignInView, choices: Choices, username = ''): HtmlPage {
  const { requestId, error } = view
  const [forName, forPassword] =
    username === '' ? [new Html(' autofocus'), undefined] : [undefined, new Html(' autofocus')]
  return makePage(
    'Sign in',
    view,
    html`${introduction(view)}
${errorText(error)}
<form method="post" action="/oidc/login/username">
${hiddenId(requestId)}
<label for="username">Username</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="${String(anyUsernameLength.maxLength)}" required${forName}${describedByError(error)}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="${String(passwordLength.maxLength)}" required${forPassword}${describedByError(error)}>
<button>Sign in</button>
</form>
${otherWays(view, choices)}`,
  )
}

function otherWays({ requestId }: SignInView, { certificateName, signers }: Choices): Html | undefined {
  if (certificateName === undefined && signers.length === 0) return undefined
  return html`<hr>
<h2>Other ways to sign in</h2>
${certificateName === undefined ? undefined : certificateForm(requestId, certificateName, 'other')}
${signers.map((signer) => signerLink(requestId, signer))}`
}

const certificateForm = (requestId: string, name: string, kind: string) =>
  html`<form method="post" action="/oidc/login/cert">
${hiddenId(requestId)}
<button class="${kind}">Use the certificate ${name}</button>
</form>`

const signerLink = (requestId: string, { id, name }: SignerChoice) =>
  html`<a class="button other" href="/oidc/login/external?id=${encodeURIComponent(requestId)}&amp;signer=${encodeURIComponent(id)}">Sign in with ${name}</a>`

/** The certificate that the browser presents, which the person confirms. */
export function certificatePage(view: SignInView, { certificateName, signers }: Choices): HtmlPage {
  const { requestId, error } = view
  const offer =
    certificateName === undefined
      ? html`<p>Your browser presents no certificate to this controller. Install one in your browser, or sign in another way.</p>`
      : certificateForm(requestId, certificateName, 'first')
  return makePage(
    'Sign in',
    view,
    html`${introduction(view)}
${errorText(error)}
${offer}
<hr>
<h2>Other ways to sign in</h2>
<a class="button other" href="/oidc/login/username?authRequestID=${encodeURIComponent(requestId)}">Use a username and a password</a>
${signers.map((signer) => signerLink(requestId, signer))}`,
  )
}

const codeInput = (hint: string, error: string | undefined, isFocused: boolean) =>
  html`${errorText(error)}
<label for="code">Code</label>
<input id="code" name="code" autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" maxlength="20" required${isFocused ? new Html(' autofocus') : undefined} aria-describedby="${error === undefined ? 'hint' : 'error hint'}"${error === undefined ? undefined : new Html(' aria-invalid="true"')}>
<p class="faint hint" id="hint">${hint}</p>`

/** The code of the second factor. */
export function totpPage(view: SignInView): HtmlPage {
  const { requestId, error } = view
  return makePage(
    'Second factor',
    view,
    html`${introduction(view)}
<form method="post" action="/oidc/login/totp">
${hiddenId(requestId)}
${codeInput('The six digits that your authenticator app shows now, or one of your recovery codes.', error, true)}
<button>Continue</button>
</form>`,
  )
}

/** The beginning of an enrollment, which creates a secret. */
export function enrollPage(view: SignInView): HtmlPage {
  const { requestId, error } = view
  return makePage(
    'Set up a second factor',
    view,
    html`${introduction(view)}
${errorText(error)}
<p>You have to sign in with a second factor from now on: a code that an authenticator app on your phone shows. Have the app ready.</p>
<form method="post" action="/oidc/login/totp/enroll">
${hiddenId(requestId)}
<button autofocus>Set it up</button>
</form>`,
  )
}

/** An enrollment that waits for its first code. */
export interface EnrollmentView {
  /** The code for the app, as SVG. */
  readonly qrCode: Html
  readonly secret: string
  readonly recoveryCodes: readonly string[]
}

export function verifyPage(view: SignInView, { qrCode, secret, recoveryCodes }: EnrollmentView): HtmlPage {
  const { requestId, error } = view
  return makePage(
    'Set up a second factor',
    view,
    html`<h2>1. Scan this code with your authenticator app</h2>
<div class="qr" role="img" aria-label="QR code for your authenticator app; the key below holds the same">${qrCode}</div>
<p class="faint">Or type this key into the app: <code>${secret.replace(/(.{4})(?=.)/g, '$1 ')}</code></p>
<h2>2. Save these recovery codes</h2>
<p class="faint">Each of them signs you in once without the app. Keep them where you find them if you lose your phone.</p>
<ol class="codes">
${recoveryCodes.map((code) => html`<li><code>${code}</code></li>\n`)}</ol>
<form method="post" action="/oidc/login/totp/enroll/verify">
${hiddenId(requestId)}
<h2>3. Enter the code that the app shows</h2>
${codeInput('Six digits. The app shows another code every half a minute.', error, error !== undefined)}
<button>Continue</button>
</form>`,
  )
}

/** A second factor of an external signer. */
export function signerFactorPage(view: SignInView, signer: SignerChoice | undefined): HtmlPage {
  const { requestId, error } = view
  return makePage(
    'Second factor',
    view,
    html`${introduction(view)}
${errorText(error)}
${
  signer === undefined
    ? html`<p>You also have to sign in with another identity provider, which this page does not know how to reach. Ask an administrator.</p>`
    : html`<p>You also have to sign in with ${signer.name}.</p>
<a class="button" autofocus href="/oidc/login/external?id=${encodeURIComponent(requestId)}&amp;signer=${encodeURIComponent(signer.id)}">Continue with ${signer.name}</a>`
}`,
  )
}

/** A sign-in that cannot go on. */
export function endPage(title: string, sentences: readonly string[], status: number): HtmlPage {
  return {
    title,
    status,
    content: html`<div role="alert">${sentences.map((sentence) => html`<p>${sentence}</p>\n`)}</div>`,
  }
}
