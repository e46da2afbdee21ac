// Requests of clients and old consoles that are not quite right, and are served all the same.
import { describe, expect, it } from 'vitest'
import { ADMIN, CLIENT, MANAGEMENT } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()

describe('unknown members of a body', () => {
  const body = { ...ADMIN, rejectUnauthorized: false, nested: { a: 1 } }

  it.each([CLIENT, MANAGEMENT])('are ignored by a sign-in at %s', async (base) => {
    const response = await world.send({ method: 'POST', path: `${base}/authenticate?method=password`, body })

    expect(response.status).toBe(200)
  })

  it('are ignored by a sign-in that names a session which is not known', async () => {
    const response = await world.send({
      method: 'POST',
      path: `${MANAGEMENT}/authenticate?method=password`,
      token: '00000000-0000-4000-8000-000000000000',
      body,
    })

    expect(response.status).toBe(200)
  })

  it('are refused on the management API once a session is known', async () => {
    const response = await world.send({
      method: 'POST',
      path: `${MANAGEMENT}/services`,
      token: await world.admin(),
      body: { name: 'web', encryptionRequired: true, rejectUnauthorized: false },
    })

    expect(response.status).toBe(400)
    expect(response.body.error.cause.field).toBe('rejectUnauthorized')
  })
})

describe('the certificate authorities', () => {
  it.each(['application/json', 'application/pkcs7-mime', 'text/html', 'application/pkcs7-mime;q=0', '*/*'])(
    'are sent in their one form to a client that accepts %s',
    async (accept) => {
      for (const base of ['', CLIENT, MANAGEMENT]) {
        const path = `${base}/.well-known/est/cacerts`
        const response = await world.send({ method: 'GET', path, headers: { accept } })

        expect([path, response.status]).toEqual([path, 200])
        expect(response.headers['content-type']).toBe('application/pkcs7-mime')
        expect(response.headers['content-transfer-encoding']).toBe('base64')
      }
    },
  )
})

describe('an enrollment', () => {
  it('by a client that accepts certificates only is judged by its token', async () => {
    const response = await world.send({
      method: 'POST',
      path: `${CLIENT}/enroll?method=ott&token=00000000-0000-4000-8000-000000000000`,
      headers: { accept: 'application/x-pem-file' },
    })

    expect([response.status, response.body.error.code]).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
  })
})

describe('the list of API documents', () => {
  it.each([CLIENT, MANAGEMENT])('at %s names each with its links, and times of the start', async (base) => {
    const { status, body } = await world.send({ method: 'GET', path: `${base}/specs` })

    expect(status).toBe(200)
    expect(body.data.map(({ id, name }: Record<string, string>) => [id, name])).toEqual([
      ['edge-client', 'edge-client'],
      ['edge-management', 'edge-management'],
      ['fabric', 'fabric'],
    ])
    expect(body.meta).not.toHaveProperty('pagination')
    for (const spec of body.data) {
      const at = new Date(world.controller.startedAt).toISOString()
      expect(spec).toMatchObject({ tags: {}, createdAt: at, updatedAt: at })
      expect(spec._links).toEqual({
        self: { href: `./specs/${spec.id}` },
        spec: { href: `./specs/${spec.id}/spec` },
      })
      expect((await world.send({ method: 'GET', path: `${base}/specs/${spec.id}` })).body.data).toEqual(spec)
    }
  })
})
