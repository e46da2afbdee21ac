// Signs in, creates a service and lists all services, at the origin that `?api=` names, or else at its own.
const api = `${new URLSearchParams(location.search).get('api') ?? ''}/edge/management/v1`

async function call(method, path, body, token) {
  const response = await fetch(api + path, {
    method,
    headers: { 'content-type': 'application/json', ...(token ? { 'zt-session': token } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const content = await response.json()
  if (!response.ok) throw new Error(content.error.code)
  return { data: content.data, token: response.headers.get('zt-session') }
}

async function signInAndCreate({ username, password }) {
  const signIn = { username: username.value, password: password.value, rejectUnauthorized: false }
  const { token } = await call('POST', '/authenticate?method=password', signIn)
  await call('POST', '/services', { name: 'made-in-a-browser', encryptionRequired: true }, token)
  const { data } = await call('GET', '/services', undefined, token)
  document
    .querySelector('ul')
    .replaceChildren(...data.map(({ name }) => Object.assign(document.createElement('li'), { textContent: name })))
}

document.querySelector('form').addEventListener('submit', (event) => {
  event.preventDefault()
  const status = document.querySelector('[role=status]')
  signInAndCreate(event.target.elements).then(
    () => (status.textContent = 'done'),
    (error) => (status.textContent = `failed: ${error.message}`),
  )
})

// Validators of JSON schemas compile a schema to a function.
document.documentElement.dataset.compiled = new Function('value', 'return Number.isInteger(value)')(1)
