// Proves that an adopted network is the former one: the same rights, and a controller that clients trust.
import type { Clock, Instant } from '../foundation/clock.ts'
import type { Authority } from '../pki/authority.ts'
import { isWithinDates } from '../pki/certificates.ts'
import { buildChain, isSignedByAuthority } from '../pki/chains.ts'
import { parsePemBlocks } from '../pki/pem.ts'
import type { PolicyReader } from '../policy/policy-index.ts'
import type { Config } from '../settings/settings.ts'
import type { Store } from '../storage/store.ts'
import { AdoptionNotes } from './adoption-notes.ts'
import type { AdoptionReport } from './adoption-report.ts'
import { type BundleVerdict, type ClientBundle, judgeClientBundle } from './client-bundles.ts'
import { Conversion } from './conversion.ts'
import { readStoredCertificates } from './convert-identities.ts'
import { proveRights, type RightsProof } from './prove-rights.ts'
import { findChainObjection } from './served-chain.ts'
import type { Source } from './source.ts'
import { SourceError } from './source-error.ts'
import type { SourceDatabase } from './source-records.ts'

/** The tables whose records the proof concerns, by the plural of their resource. */
const PROVEN_TABLES = [
  ['identities', 'identities'],
  ['authenticators', 'authenticators'],
  ['services', 'services'],
  ['edge-routers', 'routers'],
  ['service-policies', 'service_policies'],
  ['edge-router-policies', 'edge_router_policies'],
  ['service-edge-router-policies', 'service_edge_router_policies'],
] as const

/** The parts of the controller that the proof reads. */
interface Adopted {
  readonly access: { readonly index: PolicyReader }
  readonly authority: Authority
  readonly store: Store
  readonly clock: Clock
  readonly config: Config
}

export type AdoptionProof = Pick<AdoptionReport, 'rights' | 'clientBundles'>

/**
 * Requires that the controller grants what the former one granted, and that clients trust it. Certificates that lead nowhere, and
 * clients whose bundle rejects the controller, are noted. @throws SourceError if it does not, or they would not
 */
export async function proveAdoption(
  adopted: Adopted,
  { database, authority: former, clientBundles }: Pick<Source, 'database' | 'authority' | 'clientBundles'>,
  conversion: Conversion,
): Promise<AdoptionProof> {
  const { access, authority, clock } = adopted
  const rights = proveRights(database, access.index, conversion)
  if (rights.differences.length > 0) {
    const problem = `the rights are not those of the former network: ${rights.differences.join('; ')}`
    const remedy =
      "let OpenZiti's controller correct its links (ziti edge db start-check-integrity --fix-errors) and adopt again; if that changes nothing, report a defect"
    throw new SourceError('RIGHTS_DIFFER', problem, remedy)
  }
  const objection = await findChainObjection(authority, former.clientBundle, clock.now())
  if (objection !== undefined) {
    const problem = `clients that enrolled before would not trust the server certificate: ${objection}`
    throw new SourceError('CHAIN_REJECTED', problem, 'name all authorities of clients in identity.ca, or by --ca')
  }
  const { issued, unverified } = countIssuedCertificates(adopted, database, conversion)
  if (unverified > 0 && unverified === issued) {
    const problem = `no certificate that the network of the database issued to an identity leads to an authority of the configuration (${issued} were checked)`
    throw new SourceError('OTHER_NETWORK', problem, 'state the configuration and the database of the same controller')
  }
  if (unverified > 0) {
    const problem = `${unverified} certificates of identities lead to no authority of the network: these identities have to enroll again`
    conversion.notes.add('authenticators', '', '', problem)
  }
  return { rights: toCounts(rights), clientBundles: await judgeBundles(adopted, clientBundles, conversion) }
}

/** Returns the conversion of an earlier adoption: the records that it adopted. */
export async function resumeConversion(store: Store, now: Instant): Promise<Conversion> {
  const conversion = new Conversion(new AdoptionNotes(), now, (text) => text)
  for (const [plural, table] of PROVEN_TABLES) {
    const rows = await store.db.selectFrom(table).select('id').execute()
    for (const { id } of rows) conversion.addId(plural, id)
  }
  return conversion
}

async function judgeBundles(
  { authority, clock, config }: Adopted,
  bundles: readonly ClientBundle[],
  { notes }: Conversion,
): Promise<BundleVerdict[]> {
  const verdicts: BundleVerdict[] = []
  for (const bundle of bundles) {
    const verdict = await judgeClientBundle(bundle, authority, clock.now())
    verdicts.push(verdict)
    const { path, address } = bundle
    if (verdict.objection !== null)
      notes.add('clients', '', path, `a client with it rejects the server certificate: ${verdict.objection}`)
    if (address !== undefined && !config.advertise.includes(address))
      notes.add('clients', '', path, `it names the address ${address}, which is not advertised`)
  }
  return verdicts
}

function toCounts(proof: RightsProof): AdoptionReport['rights'] {
  const { dialPairs, bindPairs, routerPairs, serviceRouterPairs } = proof
  return { dial: dialPairs, bind: bindPairs, routers: routerPairs, serviceRouters: serviceRouterPairs }
}

/** Counts the certificates that the network issued, and those of them that lead to no authority, by those that are stored with them either. */
function countIssuedCertificates(
  { authority, clock }: Adopted,
  database: SourceDatabase,
  conversion: Conversion,
): { readonly issued: number; readonly unverified: number } {
  const { anchors } = authority.trust
  const issuers = anchors.filter((anchor) => isWithinDates(anchor, clock.now()))
  let issued = 0
  let unverified = 0
  for (const [id, record] of database.records('authenticators')) {
    if (!conversion.hasId('authenticators', id) || !record.flag('isIssuedByNetwork')) continue
    issued += 1
    const pem = record.text('certPem') ?? ''
    const [block] = parsePemBlocks(pem)
    const encoded = { raw: block?.bytes ?? Buffer.alloc(0) }
    if (issuers.some((issuer) => isSignedByAuthority(encoded, issuer))) continue
    // Each controller of a former cluster has an authority of its own, which its clients present.
    const [leaf, ...others] = readStoredCertificates(pem)
    const options = { now: clock.now(), ignoreLeafDates: true }
    if (!leaf || !buildChain(leaf, others, issuers, options)) unverified += 1
  }
  return { issued, unverified }
}
