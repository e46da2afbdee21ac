// Looks for what is wrong with a controller and its network, or soon will be, before users notice.
import type { Access } from '../../access/access.ts'
import type { ExternalSigners } from '../../authentication/signers/external-signers.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import type { Authority } from '../../pki/authority.ts'
import type { Config } from '../../settings/config.ts'
import type { Context } from '../../storage/context.ts'
import type { Store } from '../../storage/store.ts'
import type { Backups } from '../backup/backups.ts'
import { checkBackups, checkClock, checkDisk, checkFiles, checkSettings, type Machine } from './check-machine.ts'
import {
  checkCertificates,
  checkCredentials,
  checkPolicies,
  checkRoles,
  checkServices,
  type Network,
} from './check-network.ts'
import { type Diagnosis, MAX_DIAGNOSES_PER_CHECK, quoteWord } from './diagnosis.ts'

export interface DoctorOptions {
  /** The data directory. */
  readonly directory: string
  readonly config: Config
  readonly store: Store
  readonly authority: Authority
  readonly access: Access
  readonly signers: ExternalSigners
  readonly backups: Backups
}

type Check = () => readonly Diagnosis[] | Promise<readonly Diagnosis[]>

export class Doctor {
  readonly #options: DoctorOptions

  constructor(options: DoctorOptions) {
    this.#options = options
  }

  /** Everything that the checks find, at most `MAX_DIAGNOSES_PER_CHECK` of each. A check that fails is a diagnosis, too. */
  async diagnose(context: Context): Promise<Diagnosis[]> {
    const { config, store, access } = this.#options
    const machine = await this.#describeMachine(context)
    const network: Network = {
      store,
      context,
      index: access.index,
      warnBeforeMs: config['certificates.warnBefore'],
    }
    const signers = [...this.#options.signers.directory.all()]
    const checks: readonly (readonly [name: string, check: Check])[] = [
      ['clock', () => checkClock(machine)],
      ['disk', () => checkDisk(machine)],
      ['files', () => checkFiles(machine)],
      ['backups', () => checkBackups(machine)],
      ['settings', () => checkSettings(machine, signers.length)],
      ['certificates', () => checkCertificates(network)],
      ['signers', () => this.#checkSigners()],
      ['roles', () => checkRoles(network)],
      ['policies', () => checkPolicies(network)],
      ['services', () => checkServices(network)],
      ['routers', () => this.#checkRouters(context)],
      ['credentials', () => checkCredentials(network)],
    ]
    const diagnoses: Diagnosis[] = []
    for (const [name, check] of checks) diagnoses.push(...(await runCheck(name, check)))
    return diagnoses
  }

  async #describeMachine(context: Context): Promise<Machine> {
    const { directory, config, authority, backups } = this.#options
    const newest = await context.db
      .selectFrom('audit_records')
      .select('at')
      .orderBy('n', 'desc')
      .limit(1)
      .executeTakeFirst()
    return {
      directory,
      config,
      authority,
      now: context.clock.now(),
      backups: backups.list(),
      backupsFolder: backups.folder,
      lastChangeAt: newest?.at,
    }
  }

  #checkSigners(): Diagnosis[] {
    const { directory, keyRefresher } = this.#options.signers
    return [...directory.all()].flatMap(({ id, name, enabled, keys }): Diagnosis[] => {
      const { failure } = keyRefresher.getStatus(id)
      if (!enabled || (!failure && keys.size > 0)) return []
      const message = failure
        ? `its endpoint has returned no keys since ${toIsoTime(failure.since)}: ${failure.message}`
        : 'it has no keys, so that no token of it can be verified'
      const remedy = `controller external-jwt-signer test ${quoteWord(name)} --help`
      return [{ check: 'signers', subject: `external-jwt-signer ${name}`, message, remedy }]
    })
  }

  /** Routers that are not connected; unknown, and therefore no diagnosis, offline. */
  async #checkRouters({ db }: Context): Promise<Diagnosis[]> {
    const routers = await db
      .selectFrom('routers')
      .select(['id', 'name', 'isVerified', 'isEdge'])
      .where('disabled', '=', 0)
      .orderBy('name')
      .execute()
    return routers.flatMap(({ id, name, isVerified, isEdge }): Diagnosis[] => {
      if (this.#options.access.live.network.getPresence(id) !== 'offline') return []
      const command = isEdge === 1 ? 'edge-router' : 'router'
      const message = isVerified === 1 ? 'it is not connected' : 'it has not enrolled'
      const remedy =
        isVerified === 1 ? `start it, and look at its log` : `controller ${command} get ${quoteWord(name)} -o jwt`
      return [{ check: 'routers', subject: `${command} ${name}`, message, remedy }]
    })
  }
}

async function runCheck(name: string, check: Check): Promise<Diagnosis[]> {
  try {
    return (await check()).slice(0, MAX_DIAGNOSES_PER_CHECK)
  } catch (error) {
    const message = `the check could not be completed: ${(error as Error).message}`
    return [{ check: name, subject: name, message, remedy: 'run the command again later' }]
  }
}
