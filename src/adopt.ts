// Adopts the network of OpenZiti's controller: a new data directory that continues it, with its ids, certificates and passwords.
//
// Everything is imported and proven before `config.yaml` is written, which makes a controller of the directory: one that is interrupted
// is not a controller, and is deleted.
import { X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { AdoptionNotes } from './adopt/adoption-notes.ts'
import type { AdoptionReport } from './adopt/adoption-report.ts'
import { BoltFile } from './adopt/bolt-file.ts'
import { Conversion } from './adopt/conversion.ts'
import { type AdoptedCounts, importRecords } from './adopt/import-records.ts'
import { proveRights, type RightsProof } from './adopt/prove-rights.ts'
import { findChainObjection } from './adopt/served-chain.ts'
import { readSourceAuthority, type SourceAuthority } from './adopt/source-authority.ts'
import { SourceConfiguration } from './adopt/source-configuration.ts'
import { SourceError } from './adopt/source-error.ts'
import { computeFileDigest, requireUnlocked } from './adopt/source-files.ts'
import { SourceDatabase } from './adopt/source-records.ts'
import { findDatabase, toSettings } from './adopt/source-settings.ts'
import { hasUsableAdministrator } from './authentication/administrators/administrators.ts'
import { ApiSessionTokens } from './authentication/api-sessions/api-session-tokens.ts'
import { type Controller, openController } from './controller.ts'
import { controllers } from './definitions/resources/controllers.ts'
import { type Clock, toIsoTime } from './foundation/clock.ts'
import { silentLog } from './foundation/log.ts'
import { updateInventory } from './maintenance/certificates/inventory.ts'
import { Authority } from './pki/authority.ts'
import { isRootDue } from './pki/authority-certificates.ts'
import { computeFingerprint, computePublicKeyPrint, toCertificatePem } from './pki/certificates.ts'
import { buildChain, isSelfSigned } from './pki/chains.ts'
import { createPrivateDirectory, KeyFileError, loadKey, loadOrCreateKey, writePrivateFile } from './pki/files.ts'
import {
  type Config,
  getAdvertisedAddress,
  getControlAddress,
  listCertificateHosts,
  type Overrides,
  readConfig,
  renderConfigFile,
  splitAddress,
} from './settings/config.ts'
import { DataDirectoryError, getDataPaths } from './settings/data-directory.ts'
import { requireNativeLibraries } from './settings/native-libraries.ts'
import { ADOPTION } from './storage/audit/audit.ts'
import { AUDIT_KEY_BYTES, AuditSealer } from './storage/audit/audit-seal.ts'
import { Behaviors } from './storage/behavior.ts'
import { EntityStore, newEntity } from './storage/entities/entities.ts'
import { loadSecretCipher } from './storage/secrets/key-files.ts'
import { SECRETS_KEY_BYTES } from './storage/secrets/secret-cipher.ts'
import { continueAfter } from './storage/sqlite/commit-position.ts'
import { lockDirectory } from './storage/sqlite/directory-lock.ts'
import { createDatabase } from './storage/sqlite/maintenance.ts'
import { openSqliteStore } from './storage/sqlite/sqlite-store.ts'
import { toChange } from './storage/transactions/changes.ts'
import { Contexts } from './storage/transactions/contexts.ts'

export interface AdoptOptions {
  /** The new data directory. */
  readonly directory: string
  /** The configuration of OpenZiti's controller. */
  readonly configuration: string
  /** Its database, if it is not where the configuration says: a snapshot, for example. */
  readonly database?: string
  /** The key of its root, if it is not beside the certificate. */
  readonly rootKey?: string
  /** The variables that its configuration names. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pathPrefixes?: Readonly<Record<string, string>>
  /** How long the former controller must be able to take the network back, in milliseconds. */
  readonly trialMs?: number
  readonly clock: Clock
  /** The operator, for the audit. */
  readonly osUser: string
}

/** A network that is imported, and whose directory is not a controller's yet. */
export interface Adoption {
  readonly report: AdoptionReport
  /** Writes the settings, last of all. Returns their path. */
  complete(): string
  /** Deletes the directory. */
  discard(): void
}

/** The source of an adoption, which stays as it is. */
interface Source {
  readonly path: string
  readonly digest: string
  readonly database: SourceDatabase
  readonly authority: SourceAuthority
}

/**
 * Imports a network into a new directory, and proves that it grants what it granted.
 * @throws SourceError if it cannot be adopted, DataDirectoryError, ConfigError; then the directory is as it was
 */
export async function adoptNetwork(options: AdoptOptions): Promise<Adoption> {
  const { directory, clock, env, pathPrefixes, configuration: path } = options
  requireNewDirectory(directory)
  await requireNativeLibraries()
  const notes = new AdoptionNotes()
  const configuration = SourceConfiguration.read({ path, env, ...(pathPrefixes ? { pathPrefixes } : {}) })
  const authority = readSourceAuthority(configuration, clock.now(), options.rootKey)
  const trial = options.trialMs === undefined ? {} : { 'adoption.trialEnds': toIsoTime(clock.now() + options.trialMs) }
  const settings = { ...toSettings(configuration, authority.hosts, notes), ...trial }
  const config = readConfig(undefined, {}, settings)
  const databasePath = options.database ?? findDatabase(configuration)
  requireUnlocked(databasePath)
  const digest = await computeFileDigest(databasePath)
  const file = BoltFile.open(databasePath)
  const existed = existsSync(directory)
  const discard = () => removeContents(directory, existed)
  try {
    const source = { path: databasePath, digest, authority, database: new SourceDatabase(file) }
    const report = await fillDirectory(options, config, source, notes)
    if ((await computeFileDigest(databasePath)) !== digest) {
      const remedy = "stop OpenZiti's controller, or adopt a snapshot: ziti edge db snapshot"
      throw new SourceError('DATABASE_IN_USE', `${databasePath} changed while it was read`, remedy)
    }
    return { report, complete: () => completeAdoption(directory, settings), discard }
  } catch (error) {
    discard()
    throw error
  } finally {
    file.close()
  }
}

/** A directory that is not empty is not taken over, not even one of an adoption that was interrupted. */
function requireNewDirectory(directory: string): void {
  if (!existsSync(directory) || readdirSync(directory).length === 0) return
  const remedy =
    'a new directory for --data-dir; delete this one first if it is that of an adoption that was interrupted'
  throw new DataDirectoryError('NOT_EMPTY', `${directory} is not empty`, remedy)
}

function removeContents(directory: string, existed: boolean): void {
  if (!existed) rmSync(directory, { recursive: true, force: true })
  else for (const name of readdirSync(directory)) rmSync(`${directory}/${name}`, { recursive: true })
}

function completeAdoption(directory: string, settings: Overrides): string {
  const { config } = getDataPaths(directory)
  writePrivateFile(config, renderConfigFile(settings))
  return config
}

async function fillDirectory(
  options: AdoptOptions,
  config: Config,
  source: Source,
  notes: AdoptionNotes,
): Promise<AdoptionReport> {
  const { directory, clock } = options
  createPrivateDirectory(directory)
  const unlock = lockDirectory(directory)
  try {
    const paths = getDataPaths(directory)
    loadOrCreateKey(paths.auditKey, AUDIT_KEY_BYTES)
    loadOrCreateKey(paths.secretsKey, SECRETS_KEY_BYTES)
    await createDatabase(paths.database, clock)
    ApiSessionTokens.open(paths.tokenKey)
    Authority.adopt(paths.pki, source.authority)
    const authority = Authority.load(paths.pki)
    renewCertificates(authority, config, clock, notes)
    const cipher = loadSecretCipher(paths)
    const conversion = new Conversion(notes, clock.now(), (text, place) => cipher.encrypt(text, place))
    const counts = await importInto(directory, config, authority, source, clock, conversion)
    continueAfter(paths.database, { position: 0, at: 0 }, clock.now())
    const controller = await openController({ directory, config, clock, log: silentLog })
    try {
      return await concludeAdoption(options, controller, source, counts, conversion)
    } finally {
      await controller.close()
    }
  } finally {
    unlock()
  }
}

/** The server certificate must have the names of the settings, and be issued by the authority that clients trust. */
function renewCertificates(authority: Authority, config: Config, clock: Clock, notes: AdoptionNotes): void {
  try {
    for (const role of authority.renewDue(listCertificateHosts(config), clock.now(), config['adoption.trialEnds']))
      notes.add('certificates', role, '', `the ${role} certificate is replaced by a new one`)
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error
    notes.add('certificates', 'intermediate', '', 'the signing certificate is due, and the key of its root is not here')
  }
  for (const root of [authority.root, ...authority.former.filter(isSelfSigned)]) {
    if (!isRootDue(root, clock.now())) continue
    const remedy =
      root === authority.root ? 'replace it (controller pki rotate root)' : 'clients that trust no other stop then'
    notes.add(
      'certificates',
      'root',
      root.subject.replaceAll('\n', ', '),
      `the root ends at ${root.validTo}: ${remedy}`,
    )
  }
}

/** Imports without the behaviors of resources, which make tokens and records of their own. */
async function importInto(
  directory: string,
  config: Config,
  authority: Authority,
  { database, authority: former }: Source,
  clock: Clock,
  conversion: Conversion,
): Promise<AdoptedCounts> {
  const paths = getDataPaths(directory)
  const auditSealer = new AuditSealer(loadKey(paths.auditKey, AUDIT_KEY_BYTES))
  const store = await openSqliteStore(paths.database, clock, {
    auditSealer,
    reportError: (error) => silentLog.error({ err: error }, ''),
  })
  try {
    const entities = new EntityStore(new Behaviors())
    const contexts = new Contexts(store, clock, [{ after: (tx) => updateInventory(entities, tx, tx.uncommitted.own) }])
    const context = contexts.create({ kind: 'system' })
    await context.write(async (tx) => {
      const { certificate } = authority.server
      const own = {
        // Routers know the controller by its id.
        ...(former.controllerId === '' ? {} : { id: former.controllerId }),
        name: splitAddress(getAdvertisedAddress(config)).host,
        ctrlAddress: getControlAddress(config),
        certPem: toCertificatePem(certificate),
        fingerprint: computeFingerprint(certificate),
        publicKeyPrint: computePublicKeyPrint(certificate),
      }
      await entities.insert(tx, controllers, newEntity(tx, controllers, own), { audit: 'none' })
    })
    return await importRecords(context, entities, database, conversion)
  } finally {
    await store.close()
  }
}

/** Proves the result, and writes the one audit record of the adoption. */
async function concludeAdoption(
  options: AdoptOptions,
  controller: Controller,
  source: Source,
  counts: AdoptedCounts,
  conversion: Conversion,
): Promise<AdoptionReport> {
  const { notes } = conversion
  const { path, digest, database, authority: former } = source
  const { config, clock } = controller
  const context = controller.contexts.create({ kind: 'local-operator', osUser: options.osUser })
  const rights = await proveAdoption(controller, source, conversion)
  if (!(await hasUsableAdministrator(context))) {
    const problem = 'no administrator can sign in: controller admin recover after the adoption'
    notes.add('identities', '', '', problem)
  }
  const tunnelers = await context.db
    .selectFrom('routers')
    .select('name')
    .where('isTunnelerEnabled', '=', 1)
    .where('isVerified', '=', 1)
    .orderBy('name')
    .execute()
  await context.write(async (tx) => {
    const adopted = Object.fromEntries(Object.entries(counts).map(([kind, count]) => [kind, count.adopted]))
    const after = { source: path, digest, schema: database.schema, ...adopted }
    tx.record(
      toChange({
        audit: 'values',
        ...ADOPTION,
        id: digest.slice(0, 32),
        at: clock.now(),
        after,
      }),
    )
  })
  controller.integrity.start(context, { isRepairing: false })
  await controller.integrity.waitUntilIdle()
  for (const { description } of controller.integrity.report.results) notes.add('data', '', '', description)
  return {
    source: { database: path, digest, schema: database.schema },
    controllerId: former.controllerId,
    counts,
    rights: toCounts(rights),
    listeners: config.listeners.map(({ address, apis }) => ({ address, apis })),
    advertise: config.advertise,
    hasRootKey: former.root.key !== undefined,
    rootEnds: former.root.certificate.validTo,
    trialEnds: config['adoption.trialEnds'] === undefined ? null : toIsoTime(config['adoption.trialEnds']),
    tunnelers: tunnelers.map(({ name }) => name),
    notes: notes.listed,
    noteCount: notes.count,
  }
}

/**
 * Requires that the controller grants what the former one granted, and that clients trust it. Certificates that lead nowhere are
 * noted. @throws SourceError if it does not, or they would not
 */
async function proveAdoption(
  controller: Controller,
  { database, authority: former }: Source,
  conversion: Conversion,
): Promise<RightsProof> {
  const rights = proveRights(database, controller.access.index, conversion)
  if (rights.differences.length > 0) {
    const remedy =
      "let OpenZiti's controller correct its links (ziti edge db start-check-integrity --fix-errors) and adopt again; if that changes nothing, report a defect"
    throw new SourceError(
      'RIGHTS_DIFFER',
      `the rights are not those of the former network: ${rights.differences.join('; ')}`,
      remedy,
    )
  }
  const { authority, clock, config } = controller
  const chainObjection = await findChainObjection(
    authority,
    former.clientBundle,
    config.advertise[0] ?? '',
    clock.now(),
  )
  if (chainObjection !== undefined) {
    const problem = `clients that enrolled before would not trust the server certificate: ${chainObjection}`
    throw new SourceError(
      'CHAIN_REJECTED',
      problem,
      "name all authorities of clients in the configuration's identity.ca",
    )
  }
  const unverified = await countUnverifiedCertificates(controller)
  if (unverified > 0) {
    const problem = `${unverified} certificates of identities lead to no authority of the network: these identities have to enroll again`
    conversion.notes.add('authenticators', '', '', problem)
  }
  return rights
}

/** The tables whose records the proof concerns, by the plural of their resource. */
const PROVEN_TABLES = [
  ['identities', 'identities'],
  ['services', 'services'],
  ['edge-routers', 'routers'],
  ['service-policies', 'service_policies'],
  ['edge-router-policies', 'edge_router_policies'],
  ['service-edge-router-policies', 'service_edge_router_policies'],
] as const

/**
 * Repeats the proof of an adoption, on its data directory and the files of the former controller. No controller may run.
 * @throws SourceError if the rights differ, or clients would not trust the controller; DirectoryLockedError
 */
export async function verifyAdoption(options: AdoptOptions): Promise<Pick<AdoptionReport, 'rights' | 'notes'>> {
  const { directory, clock, env, pathPrefixes, configuration: path } = options
  const configuration = SourceConfiguration.read({ path, env, ...(pathPrefixes ? { pathPrefixes } : {}) })
  const authority = readSourceAuthority(configuration, clock.now(), options.rootKey)
  const databasePath = options.database ?? findDatabase(configuration)
  requireUnlocked(databasePath)
  const unlock = lockDirectory(directory)
  const file = BoltFile.open(databasePath)
  try {
    const config = readConfig(getDataPaths(directory).config, options.env)
    const controller = await openController({ directory, config, clock, log: silentLog })
    try {
      const notes = new AdoptionNotes()
      const conversion = new Conversion(notes, clock.now(), (text) => text)
      for (const [plural, table] of PROVEN_TABLES) {
        const rows = await controller.store.db.selectFrom(table).select('id').execute()
        for (const { id } of rows) conversion.addId(plural, id)
      }
      const source = { path: databasePath, digest: '', authority, database: new SourceDatabase(file) }
      const rights = await proveAdoption(controller, source, conversion)
      return { rights: toCounts(rights), notes: notes.listed }
    } finally {
      await controller.close()
    }
  } finally {
    file.close()
    unlock()
  }
}

function toCounts(proof: RightsProof): AdoptionReport['rights'] {
  const { dialPairs, bindPairs, routerPairs, serviceRouterPairs } = proof
  return { dial: dialPairs, bind: bindPairs, routers: routerPairs, serviceRouters: serviceRouterPairs }
}

async function countUnverifiedCertificates({ authority, store, clock }: Controller): Promise<number> {
  const { anchors } = authority.trust
  let count = 0
  const query = store.db.selectFrom('authenticators').select('certPem').where('isIssuedByNetwork', '=', 1)
  for await (const { certPem } of store.stream<{ certPem: string | null }>(query, {
    reader: { id: 'system', isAdministrator: true },
  })) {
    const leaf = new X509Certificate(certPem ?? '')
    if (!buildChain(leaf, [], anchors, { now: clock.now(), ignoreLeafDates: true })) count += 1
  }
  return count
}
