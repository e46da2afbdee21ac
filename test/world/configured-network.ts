// A network with records of every resource that administrators configure, which refer to each other.
import { makeAuthority } from './authorities.ts'
import { PASSWORD, type People } from './people.ts'

export interface ConfiguredNetwork {
  readonly ids: readonly string[]
  /** The secrets that no export may contain. */
  readonly secrets: readonly string[]
}

export async function configureNetwork(people: People): Promise<ConfiguredNetwork> {
  const ids: string[] = []
  const create = async (plural: string, body: object): Promise<string> => {
    const { id } = await people.manage('POST', `/${plural}`, body)
    ids.push(id)
    return id
  }
  await create('config-types', {
    name: 'printer.v1',
    schema: { type: 'object', properties: { queue: { type: 'string' } } },
  })
  const types = await people.manage('GET', '/config-types?filter=name="ziti-tunneler-client.v1"')
  const config = await create('configs', {
    name: 'web-client',
    configTypeId: types[0].id,
    data: { hostname: 'web.internal', port: 8080 },
  })
  const service = await create('services', {
    name: 'web',
    encryptionRequired: true,
    configs: [config],
    roleAttributes: ['web'],
    maxIdleTimeMillis: 5000,
    tags: { zone: 'b', area: 'a' },
  })
  const router = await create('edge-routers', { name: 'edge', roleAttributes: ['north'], isTunnelerEnabled: true })
  await create('transit-routers', { name: 'transit', cost: 10 })
  const identitySecret = Buffer.from('secret of the host').toString('base64')
  await create('terminators', {
    ...{
      service,
      router,
      binding: 'transport',
      address: 'tcp:localhost:8080',
      cost: 3,
      identity: 'host',
      identitySecret,
    },
  })
  const signer = await create('external-jwt-signers', {
    ...{ name: 'keycloak', issuer: 'https://keycloak.example', audience: 'controller', enabled: true },
    jwksEndpoint: 'https://keycloak.example/certs',
  })
  const policy = await create('auth-policies', {
    name: 'strict',
    primary: {
      cert: { allowed: true, allowExpiredCerts: false },
      extJwt: { allowed: true, allowedSigners: [signer] },
      updb: {
        ...{ allowed: true, minPasswordLength: 12, requireSpecialChar: true, requireNumberChar: true },
        ...{ requireMixedCase: true, maxAttempts: 3, lockoutDurationMinutes: 10 },
      },
    },
    secondary: { requireTotp: true },
  })
  await create('cas', {
    ...{ name: 'factory', certPem: (await makeAuthority('CN=factory')).pem, isAuthEnabled: true },
    ...{ isOttCaEnrollmentEnabled: true, isAutoCaEnrollmentEnabled: false, identityRoles: ['device'] },
  })
  const laptop = await create('identities', {
    ...{ name: 'laptop', type: 'Device', isAdmin: false, authPolicyId: policy, roleAttributes: ['staff'] },
    ...{
      appData: { floor: 3 },
      serviceHostingCosts: { [service]: 7 },
      serviceHostingPrecedences: { [service]: 'required' },
    },
    ...{ externalId: 'laptop@example', tags: { owner: 'jane' } },
  })
  await people.manage('POST', `/identities/${laptop}/service-configs`, [{ serviceId: service, configId: config }])
  const person = await create('identities', { name: 'jane', type: 'User', isAdmin: true, roleAttributes: ['staff'] })
  await create('authenticators', { identityId: person, method: 'updb', username: 'jane', password: PASSWORD })
  const check = await create('posture-checks', { name: 'domain', typeId: 'DOMAIN', domains: ['example.com'] })
  await create('posture-checks', { name: 'mfa', typeId: 'MFA', timeoutSeconds: 600, roleAttributes: ['strong'] })
  await create('posture-checks', {
    name: 'os',
    typeId: 'OS',
    operatingSystems: [{ type: 'Linux', versions: ['>=5.0.0'] }],
  })
  await create('service-policies', {
    ...{
      name: 'dial',
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [`@${laptop}`, '#staff'],
      serviceRoles: [`@${service}`],
    },
    postureCheckRoles: [`@${check}`],
  })
  await create('service-policies', {
    ...{ name: 'host', type: 'Bind', semantic: 'AllOf', identityRoles: ['#hosts'], serviceRoles: ['#all'] },
  })
  await create('edge-router-policies', {
    ...{ name: 'all-edge', semantic: 'AnyOf', identityRoles: ['#all'], edgeRouterRoles: [`@${router}`] },
  })
  await create('service-edge-router-policies', {
    ...{ name: 'web-north', semantic: 'AnyOf', serviceRoles: [`@${service}`], edgeRouterRoles: ['#north'] },
  })
  return { ids, secrets: [identitySecret, PASSWORD] }
}
