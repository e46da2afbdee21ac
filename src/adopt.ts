// Adopts the network of OpenZiti's controller: a new data directory that continues it, with its ids, certificates and passwords.
//
// Everything is imported and proven before `config.yaml` is written, which makes a controller of the directory: one that is interrupted
// is not a controller, and is deleted.
import { AdoptionNotes } from './adopt/adoption-notes.ts'
import type { AdoptionReport } from './adopt/adoption-report.ts'
import { Conversion } from './adopt/conversion.ts'
import { type AdoptedCounts, importRecords } from './adopt/import-records.ts'
import { claimNewDirectory } from './adopt/new-directory.ts'
import { noteOtherControllers } from './adopt/other-controllers.ts'
import { type AdoptionProof, proveAdoption, resumeConversion } from './adopt/prove-adoption.ts'
import { renewCertificates } from './adopt/renew-certificates.ts'
import { locateSource, type Source, type SourceOptions } from './adopt/source.ts'
import { SourceError } from './adopt/source-error.ts'
import { computeFileDigest, requireUnlocked } from './adopt/source-files.ts'
import { readDatabase } from './adopt/source-records.ts'
import { toSettings } from './adopt/source-settings.ts'
import { hasUsableAdministrator } from './authentication/administrators/administrators.ts'
import { ApiSessionTokens } from './authentication/api-sessions/api-session-tokens.ts'
import type { Controller } from './controller/controller.ts'
import { openController } from './controller/open-controller.ts'
import { controllers } from './definitions/resources/controllers.ts'
import { type Clock, toIsoTime } from './foundation/clock.ts'
import { silentLog } from './foundation/log.ts'
import { updateInventory } from './maintenance/certificates/inventory.ts'
import { Authority } from './pki/authority.ts'
import { computeFingerprint, computePublicKeyPrint, toCertificatePem } from './pki/certificates.ts'
import { loadKey, loadOrCreateKey } from './pki/files.ts'
import { getAdvertisedAddress, getControlAddress } from './settings/addresses.ts'
import { readConfig } from './settings/config.ts'
import { getDataPaths } from './settings/data-directory.ts'
import { requireNativeLibraries } from './settings/native-libraries.ts'
import { splitAddress } from './settings/setting-types.ts'
import type { Config } from './settings/settings.ts'
import { ADOPTION } from './storage/audit/audit.ts'
import { AUDIT_KEY_BYTES, AuditSealer } from './storage/audit/audit-seal.ts'
import { Behaviors } from './storage/behavior.ts'
import { EntityStore, newEntity } from './storage/entities/entities.ts'
import { loadSecretCipher } from './storage/secrets/key-files.ts'
import { SECRETS_KEY_BYTES } from './storage/secrets/secret-cipher.ts'
import { dropIndexes } from './storage/sqlite/bulk-load.ts'
import { continueAfter } from './storage/sqlite/commit-position.ts'
import { lockDirectory } from './storage/sqlite/directory-lock.ts'
import { createDatabase } from './storage/sqlite/maintenance.ts'
import { openSqliteStore } from './storage/sqlite/sqlite-store.ts'
import { toChange } from './storage/transactions/changes.ts'
import { Contexts } from './storage/transactions/contexts.ts'

const IMPORT_CACHE_MEGABYTES = 64

export interface AdoptOptions extends SourceOptions {
  /** The new data directory. */
  readonly directory: string
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

/**
 * Imports a network into a new directory, and proves that it grants what it granted.
 * @throws SourceError if it cannot be adopted, DataDirectoryError, ConfigError; then the directory is as it was
 */
export async function adoptNetwork(options: AdoptOptions): Promise<Adoption> {
  const { directory, clock } = options
  await requireNativeLibraries()
  const claimed = claimNewDirectory(directory)
  try {
    const notes = new AdoptionNotes()
    const { configuration, authority, databasePath: path, clientBundles } = locateSource(options, clock.now())
    const trial =
      options.trialMs === undefined ? {} : { 'adoption.trialEnds': toIsoTime(clock.now() + options.trialMs) }
    const settings = { ...toSettings(configuration, authority.hosts, notes), ...trial }
    const config = readConfig(undefined, {}, settings)
    requireUnlocked(path)
    const digest = await computeFileDigest(path)
    const report = await readDatabase(path, directory, (database) =>
      fillDirectory(options, config, { path, digest, authority, clientBundles, database }, notes),
    )
    if ((await computeFileDigest(path)) !== digest) {
      const remedy = "stop OpenZiti's controller, or adopt a snapshot: ziti edge db snapshot"
      throw new SourceError('DATABASE_IN_USE', `${path} changed while it was read`, remedy)
    }
    return { report, complete: () => claimed.complete(settings), discard: () => claimed.discard() }
  } catch (error) {
    claimed.discard()
    throw error
  }
}

async function fillDirectory(
  options: AdoptOptions,
  config: Config,
  source: Source,
  notes: AdoptionNotes,
): Promise<AdoptionReport> {
  const { directory, clock } = options
  const paths = getDataPaths(directory)
  loadOrCreateKey(paths.auditKey, AUDIT_KEY_BYTES)
  loadOrCreateKey(paths.secretsKey, SECRETS_KEY_BYTES)
  await createDatabase(paths.database, clock)
  ApiSessionTokens.open(paths.tokenKey)
  Authority.adopt(paths.pki, source.authority)
  const authority = Authority.load(paths.pki)
  renewCertificates(authority, config, clock.now(), notes)
  const cipher = loadSecretCipher(paths)
  const conversion = new Conversion(notes, clock.now(), (text, place) => cipher.encrypt(text, place))
  const makeIndexes = dropIndexes(paths.database)
  const counts = await importInto(directory, config, authority, source, clock, conversion)
  await makeIndexes()
  continueAfter(paths.database, { position: 0, at: 0 }, clock.now())
  const controller = await openController({ directory, config, clock, log: silentLog })
  try {
    return await concludeAdoption(options, controller, source, counts, conversion)
  } finally {
    await controller.close()
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
    // Keys that are digests come in no order: the pages of their indexes have to stay in memory.
    cacheMegabytes: IMPORT_CACHE_MEGABYTES,
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
  noteOtherControllers(database, { controllerId: former.controllerId, advertise: config.advertise }, notes)
  const proof = await proveAdoption(controller, source, conversion)
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
    tx.record(toChange({ audit: 'values', ...ADOPTION, id: digest.slice(0, 32), at: clock.now(), after }))
  })
  controller.integrity.start(context, { isRepairing: false })
  await controller.integrity.waitUntilIdle()
  for (const { description } of controller.integrity.report.results) notes.add('data', '', '', description)
  return {
    source: { database: path, digest, schema: database.schema },
    controllerId: former.controllerId,
    counts,
    ...proof,
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
 * Repeats the proof of an adoption, on its data directory and the files of the former controller. No controller may run.
 * @throws SourceError if the rights differ, or clients would not trust the controller; DirectoryLockedError
 */
export async function verifyAdoption(options: AdoptOptions): Promise<AdoptionProof & Pick<AdoptionReport, 'notes'>> {
  const { directory, clock, env } = options
  const { authority, databasePath, clientBundles } = locateSource(options, clock.now())
  requireUnlocked(databasePath)
  const unlock = lockDirectory(directory)
  try {
    const config = readConfig(getDataPaths(directory).config, env)
    const controller = await openController({ directory, config, clock, log: silentLog })
    try {
      const conversion = await resumeConversion(controller.store, clock.now())
      const proof = await readDatabase(databasePath, directory, (database) =>
        proveAdoption(controller, { authority, clientBundles, database }, conversion),
      )
      return { ...proof, notes: conversion.notes.listed }
    } finally {
      await controller.close()
    }
  } finally {
    unlock()
  }
}
