// The style of all pages, in light and dark as the browser prefers. It stands in each page, so that a page is one response.

export const STYLE = `
:root {
  color-scheme: light dark;
  --back: #f2f4f7; --card: #ffffff; --text: #1b2430; --faint: #556070; --line: #8793a3; --soft: #d5dbe3;
  --accent: #1555b5; --on-accent: #ffffff; --error-back: #fdeceb; --error: #93201a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #12161c; --card: #1b2129; --text: #e8ecf1; --faint: #a3afbd; --line: #75818f; --soft: #37414d;
    --accent: #8ab8ff; --on-accent: #0c1a30; --error-back: #3a1d1c; --error: #ffb4ad;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main {
  max-width: 26rem; margin: 12vh auto 2rem; padding: 2rem; background: var(--card);
  border: 1px solid var(--soft); border-radius: .75rem;
}
h1 { margin: 0 0 .25rem; font-size: 1.5rem; line-height: 1.25; }
h2 { margin: 1.75rem 0 .25rem; font-size: 1.05rem; }
p { margin: .25rem 0 1rem; overflow-wrap: anywhere; }
p.hint { margin-top: .6rem; }
.faint { color: var(--faint); }
.error { padding: .65rem .85rem; border-radius: .5rem; background: var(--error-back); color: var(--error); }
label { display: block; margin: 1rem 0 .3rem; font-weight: 600; }
input {
  width: 100%; padding: .6rem .7rem; border: 1px solid var(--line); border-radius: .5rem;
  background: var(--card); color: var(--text); font: inherit;
}
button, .button {
  display: block; width: 100%; margin: 1.25rem 0 0; padding: .65rem 1rem; border: 1px solid var(--accent); border-radius: .5rem;
  background: var(--accent); color: var(--on-accent); font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer;
}
.other { background: transparent; color: var(--accent); margin-top: .75rem; }
a { color: var(--accent); }
button:hover, .button:hover { filter: brightness(1.08); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
hr { margin: 1.75rem 0 .5rem; border: 0; border-top: 1px solid var(--soft); }
.qr { margin: 1rem 0; padding: .5rem; border-radius: .5rem; background: #ffffff; text-align: center; }
.qr svg { display: block; width: 100%; max-width: 14rem; height: auto; margin: 0 auto; }
code { font: .95rem/1.6 ui-monospace, monospace; overflow-wrap: anywhere; }
.codes { columns: 2; margin: .5rem 0 1rem; padding-left: 1.75rem; }
.codes li::marker { color: var(--faint); }
@media (max-width: 30rem) { main { margin: 0; min-height: 100vh; border: 0; border-radius: 0; padding: 1.5rem 1.25rem; } }
`
