// The tables of the first release. Migrations are frozen once released: they import nothing from the rest of the code.
import { type Kysely, sql } from 'kysely'

type Column = readonly [name: string, type: 'text' | 'integer', nullable?: 'null']

/** The parts of a table of records besides its columns. */
interface Extras {
  /** Columns, or groups of columns, that no two records may share. */
  readonly unique?: readonly (readonly string[])[]
  /** Column → the table whose `id` it holds. */
  readonly references?: Readonly<Record<string, string>>
  /** Sets that lists are filtered by: each gets a table of its members. */
  readonly sets?: readonly string[]
  /** Further columns, or groups of columns, that records are sorted or found by. */
  readonly indexes?: readonly (string | readonly string[])[]
  /** Booleans that hold for few records, which are found by them. */
  readonly marks?: readonly string[]
  /** A later record has a greater `n` than every earlier one, also than those that are deleted. */
  readonly isInOrder?: boolean
}

export async function up(db: Kysely<unknown>): Promise<void> {
  const records = recordTables(db)

  await records(
    'config_types',
    [
      ['name', 'text'],
      ['schema', 'text', 'null'],
    ],
    { unique: [['name']] },
  )
  await records(
    'configs',
    [
      ['name', 'text'],
      ['configTypeId', 'text'],
      ['data', 'text'],
    ],
    { unique: [['name']], references: { configTypeId: 'config_types' } },
  )
  await records(
    'services',
    [
      ['name', 'text'],
      ['roleAttributes', 'text'],
      ['configs', 'text'],
      ['encryptionRequired', 'integer'],
      ['maxIdleTimeMillis', 'integer'],
      ['terminatorStrategy', 'text'],
    ],
    { unique: [['name']], sets: ['role_attributes', 'configs'] },
  )
  await records(
    'external_jwt_signers',
    [
      ['name', 'text'],
      ['issuer', 'text'],
      ['audience', 'text', 'null'],
      ['enabled', 'integer'],
      ['certPem', 'text', 'null'],
      ['jwksEndpoint', 'text', 'null'],
      ['kid', 'text', 'null'],
      ['claimsProperty', 'text'],
      ['useExternalId', 'integer'],
      ['targetToken', 'text'],
      ['clientId', 'text', 'null'],
      ['externalAuthUrl', 'text', 'null'],
      ['scopes', 'text'],
      ['commonName', 'text'],
      ['fingerprint', 'text', 'null'],
      ['notBefore', 'integer'],
      ['notAfter', 'integer'],
      ['fetchedKeys', 'text', 'null'],
    ],
    { unique: [['name'], ['issuer'], ['kid'], ['fingerprint']] },
  )
  await records(
    'auth_policies',
    [
      ['name', 'text'],
      ['primary', 'text'],
      ['secondary', 'text'],
    ],
    { unique: [['name']] },
  )
  await records('identity_types', [['name', 'text']], { unique: [['name']] })
  await records(
    'routers',
    [
      ['name', 'text'],
      ['cost', 'integer'],
      ['noTraversal', 'integer'],
      ['disabled', 'integer'],
      ['isVerified', 'integer'],
      ['fingerprint', 'text', 'null'],
      ['unverifiedFingerprint', 'text', 'null'],
      ['unverifiedCertPem', 'text', 'null'],
      ['formerFingerprint', 'text', 'null'],
      ['interfaces', 'text', 'null'],
      ['lastVersion', 'text', 'null'],
      ['isEdge', 'integer'],
      ['roleAttributes', 'text'],
      ['isTunnelerEnabled', 'integer'],
      ['appData', 'text'],
      ['certPem', 'text', 'null'],
    ],
    { unique: [['name']], sets: ['role_attributes'], indexes: ['fingerprint'] },
  )
  await records(
    'terminators',
    [
      ['serviceId', 'text'],
      ['routerId', 'text'],
      ['binding', 'text'],
      ['address', 'text'],
      ['cost', 'integer'],
      ['precedence', 'text'],
      ['identity', 'text'],
      ['identitySecret', 'text', 'null'],
      ['hostId', 'text'],
      ['sessionId', 'text'],
      ['peerData', 'text'],
      ['isSystem', 'integer'],
    ],
    {
      references: { serviceId: 'services', routerId: 'routers' },
      indexes: ['hostId', ['serviceId', 'identity', 'hostId']],
    },
  )
  await records(
    'link_settings',
    [
      ['sourceId', 'text'],
      ['destinationId', 'text'],
      ['protocol', 'text'],
      ['dialAddress', 'text'],
      ['isDown', 'integer'],
      ['staticCost', 'integer'],
    ],
    { references: { sourceId: 'routers', destinationId: 'routers' } },
  )
  await records(
    'cas',
    [
      ['name', 'text'],
      ['certPem', 'text'],
      ['fingerprint', 'text'],
      ['fingerprint256', 'text'],
      ['subject', 'text'],
      ['isVerified', 'integer'],
      ['verificationToken', 'text'],
      ['isAuthEnabled', 'integer'],
      ['isOttCaEnrollmentEnabled', 'integer'],
      ['isAutoCaEnrollmentEnabled', 'integer'],
      ['identityRoles', 'text'],
      ['identityNameFormat', 'text'],
      ['externalIdClaim', 'text', 'null'],
    ],
    { unique: [['name'], ['fingerprint256']] },
  )
  await records(
    'identities',
    [
      ['name', 'text'],
      ['typeId', 'text'],
      ['isAdmin', 'integer'],
      ['isDefaultAdmin', 'integer'],
      ['authPolicyId', 'text'],
      ['externalId', 'text', 'null'],
      ['roleAttributes', 'text'],
      ['permissions', 'text'],
      ['appData', 'text'],
      ['defaultHostingCost', 'integer'],
      ['defaultHostingPrecedence', 'text'],
      ['serviceHostingCosts', 'text'],
      ['serviceHostingPrecedences', 'text'],
      ['hostedServices', 'text'],
      ['disabledAt', 'integer', 'null'],
      ['disabledUntil', 'integer', 'null'],
      ['envInfo', 'text'],
      ['sdkInfo', 'text'],
    ],
    {
      unique: [['name'], ['externalId']],
      references: { typeId: 'identity_types', authPolicyId: 'auth_policies' },
      sets: ['role_attributes', 'hosted_services', 'permissions'],
      marks: ['isAdmin'],
    },
  )
  await records(
    'service_configs',
    [
      ['identityId', 'text'],
      ['serviceId', 'text'],
      ['configId', 'text'],
      ['configTypeId', 'text'],
    ],
    {
      unique: [['identityId', 'serviceId', 'configTypeId']],
      references: {
        identityId: 'identities',
        serviceId: 'services',
        configId: 'configs',
        configTypeId: 'config_types',
      },
    },
  )
  await records(
    'authenticators',
    [
      ['identityId', 'text'],
      ['method', 'text'],
      ['username', 'text', 'null'],
      ['foldedUsername', 'text', 'null'],
      ['passwordHash', 'text', 'null'],
      ['failedAttempts', 'integer'],
      ['certPem', 'text', 'null'],
      ['fingerprint', 'text', 'null'],
      ['fingerprint256', 'text', 'null'],
      ['unverifiedCertPem', 'text', 'null'],
      ['caId', 'text', 'null'],
      ['publicKeyPrint', 'text', 'null'],
      ['isIssuedByNetwork', 'integer'],
      ['isExtendRequested', 'integer'],
      ['isKeyRollRequested', 'integer'],
      ['extendRequestedAt', 'integer', 'null'],
      ['lastAuthResolvedToRoot', 'integer'],
      ['extendLog', 'text'],
    ],
    {
      unique: [['foldedUsername'], ['fingerprint256']],
      references: { identityId: 'identities', caId: 'cas' },
      indexes: ['fingerprint', 'username'],
    },
  )
  await records(
    'enrollments',
    [
      ['identityId', 'text', 'null'],
      ['edgeRouterId', 'text', 'null'],
      ['transitRouterId', 'text', 'null'],
      ['method', 'text'],
      ['expiresAt', 'integer'],
      ['username', 'text', 'null'],
      ['caId', 'text', 'null'],
      ['isBootstrap', 'integer'],
      ['token', 'text'],
    ],
    {
      unique: [['token'], ['identityId', 'method'], ['edgeRouterId'], ['transitRouterId']],
      references: { identityId: 'identities', edgeRouterId: 'routers', transitRouterId: 'routers', caId: 'cas' },
      marks: ['isBootstrap'],
    },
  )
  await records(
    'tokens',
    [
      ['name', 'text'],
      ['identityId', 'text'],
      ['isAdmin', 'integer'],
      ['permissions', 'text'],
      ['expiresAt', 'integer'],
      ['lastUsedAt', 'integer', 'null'],
      ['secretHash', 'text'],
      ['isTotpComplete', 'integer'],
    ],
    { unique: [['name'], ['secretHash']], references: { identityId: 'identities' } },
  )
  await records(
    'api_sessions',
    [
      ['identityId', 'text'],
      ['authenticatorId', 'text'],
      ['caId', 'text', 'null'],
      ['certFingerprint', 'text', 'null'],
      ['method', 'text', 'null'],
      ['externalId', 'text', 'null'],
      ['signerKey', 'text', 'null'],
      ['clientId', 'text', 'null'],
      ['refreshTokenId', 'text', 'null'],
      ['formerRefreshTokens', 'text'],
      ['authorizationRequestId', 'text', 'null'],
      ['authorization', 'text', 'null'],
      ['hasTokens', 'integer'],
      ['endsAt', 'integer', 'null'],
      ['authenticatedAt', 'integer'],
      ['tokenHash', 'text'],
      ['ipAddress', 'text'],
      ['configTypes', 'text'],
      ['owesTotp', 'integer'],
      ['isMfaComplete', 'integer'],
      ['mfaPassedAt', 'integer', 'null'],
      ['wokenAt', 'integer', 'null'],
      ['unlockedAt', 'integer', 'null'],
      ['wrongCodeCount', 'integer'],
      ['isCertExtendable', 'integer'],
      ['improperClientCertChain', 'integer'],
      ['lastActivityAt', 'integer'],
    ],
    {
      references: { identityId: 'identities', caId: 'cas' },
      indexes: ['authenticatorId', 'endsAt', ['clientId', 'lastActivityAt'], ['method', 'authenticatedAt']],
      // Revocations tell the sessions that had begun from later ones by it.
      isInOrder: true,
    },
  )
  // Most sessions did not begin by a request.
  await index(db, 'api_sessions', ['authorizationRequestId'], true, 'authorizationRequestId')
  await records(
    'mfa_enrollments',
    [
      ['identityId', 'text'],
      ['isVerified', 'integer'],
      ['apiSessionId', 'text', 'null'],
      ['encryptedSecret', 'text'],
      ['encryptedRecoveryCodes', 'text'],
      ['lastUsedStep', 'integer'],
      ['wrongCodes', 'text'],
      ['knownSources', 'text'],
    ],
    { unique: [['identityId']], references: { identityId: 'identities', apiSessionId: 'api_sessions' } },
  )
  await records(
    'session_certificates',
    [
      ['apiSessionId', 'text'],
      ['subject', 'text'],
      ['fingerprint', 'text'],
      ['validFrom', 'integer'],
      ['validTo', 'integer'],
      ['certificate', 'text'],
    ],
    { references: { apiSessionId: 'api_sessions' }, indexes: ['fingerprint'] },
  )
  await records(
    'certificates',
    [
      ['kind', 'text'],
      ['subject', 'text'],
      ['fingerprint', 'text'],
      ['notBefore', 'integer'],
      ['notAfter', 'integer'],
      ['isCurrent', 'integer'],
      ['holderId', 'text', 'null'],
      ['sourceId', 'text'],
    ],
    { indexes: ['notAfter', 'sourceId'] },
  )
  await records(
    'sessions',
    [
      ['apiSessionId', 'text'],
      ['identityId', 'text'],
      ['serviceId', 'text'],
      ['type', 'text'],
      ['opaqueToken', 'text'],
      ['hasSignedToken', 'integer'],
    ],
    {
      unique: [['opaqueToken'], ['apiSessionId', 'serviceId', 'type']],
      references: { apiSessionId: 'api_sessions', identityId: 'identities', serviceId: 'services' },
    },
  )
  await records(
    'posture_check_types',
    [
      ['name', 'text'],
      ['operatingSystems', 'text'],
      ['version', 'text'],
    ],
    { unique: [['name']] },
  )
  await records(
    'posture_checks',
    [
      ['name', 'text'],
      ['roleAttributes', 'text'],
      ['version', 'integer'],
      ['typeId', 'text'],
      ['details', 'text'],
    ],
    { unique: [['name']], sets: ['role_attributes'] },
  )
  await records(
    'service_policies',
    [
      ['name', 'text'],
      ['type', 'text'],
      ['semantic', 'text'],
      ['identityRoles', 'text'],
      ['serviceRoles', 'text'],
      ['postureCheckRoles', 'text'],
    ],
    { unique: [['name']], sets: ['identity_roles', 'service_roles', 'posture_check_roles'] },
  )
  await records(
    'edge_router_policies',
    [
      ['name', 'text'],
      ['semantic', 'text'],
      ['edgeRouterRoles', 'text'],
      ['identityRoles', 'text'],
      ['isSystem', 'integer'],
    ],
    { unique: [['name']], sets: ['edge_router_roles', 'identity_roles'] },
  )
  await records(
    'service_edge_router_policies',
    [
      ['name', 'text'],
      ['semantic', 'text'],
      ['edgeRouterRoles', 'text'],
      ['serviceRoles', 'text'],
    ],
    { unique: [['name']], sets: ['edge_router_roles', 'service_roles'] },
  )
  await records(
    'controllers',
    [
      ['name', 'text'],
      ['ctrlAddress', 'text', 'null'],
      ['servedAddresses', 'text'],
      ['certPem', 'text'],
      ['fingerprint', 'text'],
      ['node', 'text', 'null'],
      ['publicKeyPrint', 'text'],
      ['lastJoinedAt', 'integer'],
    ],
    { unique: [['node']], indexes: ['publicKeyPrint'] },
  )
  await records(
    'controller_settings',
    [
      ['controllerId', 'text', 'null'],
      ['oidc', 'text'],
      ['signsSessionsSince', 'integer', 'null'],
    ],
    { unique: [['controllerId']], references: { controllerId: 'controllers' } },
  )
  await records(
    'token_keys',
    [
      ['kid', 'text'],
      ['certificate', 'text'],
      ['encryptedKey', 'text'],
      ['signsFrom', 'integer'],
      ['notAfter', 'integer'],
    ],
    { unique: [['kid']] },
  )
  await records('ticket_keys', [['encryptedKey', 'text']], {})
  await records(
    'shared_files',
    [
      ['name', 'text'],
      ['sealedContent', 'text'],
    ],
    { unique: [['name']] },
  )
  await records(
    'webhooks',
    [
      ['name', 'text'],
      ['address', 'text'],
      ['types', 'text'],
      ['enabled', 'integer'],
      ['ownerId', 'text', 'null'],
      ['pausedAt', 'integer', 'null'],
      ['encryptedSecret', 'text'],
      ['cursor', 'text'],
    ],
    { unique: [['name']] },
  )
  await auditTable(db)
  await receiptTable(db)
  await settingTable(db)
  await revocationTable(db)
  await machineStateTable(db)
  await positionTable(db)
  await controllerListTable(db)
  await modelTables(db)
  await endedSessionTables(db)
}

/** Returns what makes a table of records: the base columns, its own, its indexes and the tables of its sets. */
function recordTables(db: Kysely<unknown>) {
  return async (table: string, columns: readonly Column[], extras: Extras): Promise<void> => {
    const { unique = [], references = {}, sets = [], indexes = [], marks = [], isInOrder = false } = extras
    let builder = keyed(db, table, isInOrder)
      .addColumn('id', 'text', (column) => column.notNull().unique())
      .addColumn('createdAt', 'integer', (column) => column.notNull())
      .addColumn('updatedAt', 'integer', (column) => column.notNull())
      .addColumn('tags', 'text', (column) => column.notNull())
    for (const [name, type, nullable] of columns) {
      builder = builder.addColumn(name, type, (column) => {
        const target = references[name]
        const referring = target ? column.references(`${target}.id`) : column
        return nullable ? referring : referring.notNull()
      })
    }
    await builder.execute()
    const isNullable = (name: string) => columns.some(([column, , nullable]) => column === name && nullable)
    // Most records refer to few of the others: a reference that is null is not looked up, and takes no room in an index.
    const onlyIfSet = (name: string) => (name in references && isNullable(name) ? name : undefined)
    for (const group of unique)
      await index(db, table, group, true, group.length === 1 ? onlyIfSet(`${group[0]}`) : undefined)
    const isIndexed = (name: string) => unique.some(([first]) => first === name)
    for (const name of Object.keys(references))
      if (!isIndexed(name)) await index(db, table, [name], false, onlyIfSet(name))
    for (const columns of ['createdAt', 'updatedAt', ...indexes]) await index(db, table, [columns].flat(), false)
    for (const mark of marks) await markIndex(db, table, mark)
    for (const set of sets) await setTable(db, table, set)
  }
}

/**
 * The members of one set field, found by value first. The other direction needs no index: the record itself has them,
 * in a JSON column.
 */
async function setTable(db: Kysely<unknown>, table: string, set: string): Promise<void> {
  await db.schema
    .createTable(`${table}_${set}`)
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('n', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${table}_${set}_key`, ['value', 'n'])
    .modifyEnd(sql`strict, without rowid`)
    .execute()
}

/** One row for each holder that knows the new root. No foreign keys: holders are identities and routers. */
async function receiptTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('root_receipts')
    .addColumn('holderId', 'text', (column) => column.primaryKey())
    .addColumn('fingerprint', 'text', (column) => column.notNull())
    .addColumn('fetchedAt', 'integer', (column) => column.notNull())
    .modifyEnd(sql`strict, without rowid`)
    .execute()
}

/** One row for each setting on which the controllers of a network agree. */
async function settingTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('shared_settings')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('value', 'text', (column) => column.notNull())
    .modifyEnd(sql`strict, without rowid`)
    .execute()
}

/** One row for each change that revoked API sessions, until they are deleted. No foreign keys: it names what may be gone. */
async function revocationTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('api_session_revocations')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('sessions', 'text', (column) => column.notNull())
    .addColumn('newest', 'integer', (column) => column.notNull())
    .modifyEnd(sql`strict, without rowid`)
    .execute()
}

/** One row for each identity with API sessions whose machines have reported. */
async function machineStateTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('machine_states')
    .addColumn('identityId', 'text', (column) => column.primaryKey())
    .addColumn('state', 'text', (column) => column.notNull())
    .modifyEnd(sql`strict, without rowid`)
    .execute()
}

/**
 * One row: the position and the time of the last commit, the line of commits that it belongs to, and, with a log that several
 * controllers share, its place there.
 */
async function positionTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('commit_position')
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('at', 'integer', (column) => column.notNull())
    .addColumn('timeline', 'text', (column) => column.notNull())
    .addColumn('chain', 'text', (column) => column.notNull().defaultTo(''))
    .addColumn('network', 'text', (column) => column.notNull().defaultTo(''))
    .modifyEnd(sql`strict`)
    .execute()
  await sql`insert into commit_position (position, at, timeline) values (0, 0, lower(hex(randomblob(16))))`.execute(db)
}

/** One row: which state of the addresses of controllers routers have. It has one from the first change on. */
async function controllerListTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('controller_list')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('version', 'integer', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
}

/** A log of what commits changed for routers, and the revocations of tokens. No foreign keys: both name what may be gone. */
async function modelTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('model_changes')
    .addColumn('position', 'integer', (column) => column.primaryKey())
    .addColumn('previous', 'integer', (column) => column.notNull())
    .addColumn('at', 'integer', (column) => column.notNull())
    .addColumn('size', 'integer', (column) => column.notNull())
    .addColumn('events', 'text')
    .modifyEnd(sql`strict`)
    .execute()
  await db.schema
    .createTable('revocations')
    .addColumn('n', 'integer', (column) => column.primaryKey())
    .addColumn('id', 'text', (column) => column.notNull().unique())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('issuedBefore', 'integer', (column) => column.notNull())
    .addColumn('expiresAt', 'integer', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
  await index(db, 'revocations', ['expiresAt'], false)
}

/** The ends of sessions that routers may not have heard of. The rows go with the records that they are about. */
async function endedSessionTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('ended_sessions')
    .addColumn('apiSessionId', 'text', (column) =>
      column.primaryKey().references('api_sessions.id').onDelete('cascade'),
    )
    .addColumn('firstCreatedAt', 'integer', (column) => column.notNull())
    .addColumn('endedAt', 'integer', (column) => column.notNull())
    .modifyEnd(sql`strict, without rowid`)
    .execute()
  await index(db, 'ended_sessions', ['endedAt'], false)
  await db.schema
    .createTable('absent_routers')
    .addColumn('routerId', 'text', (column) => column.primaryKey().references('routers.id').onDelete('cascade'))
    .addColumn('heardUntil', 'integer', (column) => column.notNull())
    .modifyEnd(sql`strict, without rowid`)
    .execute()
}

/** One record a change. It has no foreign keys, because it remains when the records that it describes are deleted. */
async function auditTable(db: Kysely<unknown>): Promise<void> {
  let builder = keyed(db, 'audit_records').addColumn('at', 'integer', (column) => column.notNull())
  const texts = ['actorKind', 'requestId', 'operation', 'resource', 'entityId', 'previousHash', 'hash']
  for (const name of texts) builder = builder.addColumn(name, 'text', (column) => column.notNull())
  for (const name of ['actorId', 'actorName', 'address', 'entityName', 'before', 'after', 'method', 'reason', 'node']) {
    builder = builder.addColumn(name, 'text')
  }
  for (const name of ['count', 'elapsed']) {
    builder = builder.addColumn(name, 'integer', (column) => column.notNull())
  }
  await builder.execute()
  for (const name of ['at', 'actorId', 'entityId', 'requestId']) await index(db, 'audit_records', [name], false)
}

/** @param isInOrder whether SQLite may not use the key of a deleted row again */
function keyed(db: Kysely<unknown>, table: string, isInOrder = false) {
  return db.schema
    .createTable(table)
    .addColumn('n', 'integer', (column) => (isInOrder ? column.primaryKey().autoIncrement() : column.primaryKey()))
    .modifyEnd(sql`strict`)
}

/** An index of the records for which a boolean holds, and of no others. */
async function markIndex(db: Kysely<unknown>, table: string, mark: string): Promise<void> {
  const builder = db.schema.createIndex(`${table}_${mark}_index`).on(table).column('id')
  await builder.where(sql.ref(mark), '=', 1).execute()
}

/** @param onlyIfSet a column without whose value a record is not in the index */
async function index(
  db: Kysely<unknown>,
  table: string,
  columns: readonly string[],
  isUnique: boolean,
  onlyIfSet?: string,
): Promise<void> {
  const name = `${table}_${columns.join('_')}_${isUnique ? 'unique' : 'index'}`
  const all = db.schema
    .createIndex(name)
    .on(table)
    .columns([...columns])
  const builder = onlyIfSet === undefined ? all : all.where(sql.ref(onlyIfSet), 'is not', null)
  await (isUnique ? builder.unique() : builder).execute()
}
