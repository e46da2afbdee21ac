// The files of the controller's own authority. Each is replaced as a whole, in an order that can be read after every step.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { toCertificatePem } from './certificates.ts'
import { isSelfSigned } from './chains.ts'
import { isUnfinished, KeyFileError, writePrivateFile } from './files.ts'
import { parsePemBlocks, toKeyPem, toPem } from './pem.ts'

/** A certificate with its private key. */
export interface KeyedCertificate {
  readonly certificate: X509Certificate
  readonly key: KeyObject
}

/** The contents of the files. The key of the root is read only to issue authorities, and an operator may store it elsewhere. */
export interface AuthorityState {
  readonly trustDomain: string
  /** The root that issues. */
  readonly root: X509Certificate
  /** While the root replaces another one: that one, and the new root's key as certified by it. */
  readonly replacement: RootReplacement | undefined
  readonly intermediate: KeyedCertificate
  /** Authorities that issued earlier, whose certificates may still be in use. */
  readonly former: readonly X509Certificate[]
  readonly server: KeyedCertificate
  /** Earlier server certificates with the same key: enrollment JWTs name them. */
  readonly formerServers: readonly X509Certificate[]
}

export interface RootReplacement {
  readonly previousRoot: X509Certificate
  /** Subject and key of the new root, issued by the previous one. */
  readonly crossCertificate: X509Certificate
}

/** The authority of another controller, which this one continues. */
export interface AdoptedAuthority {
  readonly trustDomain: string
  readonly root: { readonly certificate: X509Certificate; readonly key: KeyObject | undefined }
  readonly intermediate: KeyedCertificate
  /** Further authorities that clients trust, and those between the intermediate and the root. */
  readonly former: readonly X509Certificate[]
  readonly server: KeyedCertificate
}

/** Runs synchronous work with the rights of the account that owns the files. */
export type RunAsOwner = <T>(work: () => T) => T

/**
 * `root.crt`: the root; while it replaces another one, its cross-signed form and the previous root. `intermediate.crt`: the
 * intermediate that issues. `former.crt`: the authorities that issued earlier. `server.crt`: the server certificate, then
 * earlier ones. A `.key` file holds the key of the first certificate beside it. While that is replaced it holds both keys,
 * so that each moment has a certificate with its key.
 */
export class AuthorityFiles {
  readonly #directory: string
  readonly #runAsOwner: RunAsOwner
  /** Contents that are written nowhere, by the names of the files; undefined if files are written at once. */
  readonly #drafted: Map<string, string> | undefined

  constructor(directory: string, runAsOwner: RunAsOwner = (work) => work(), drafted?: Map<string, string>) {
    this.#directory = directory
    this.#runAsOwner = runAsOwner
    this.#drafted = drafted
  }

  /** The same files, except that what is written to them goes to `drafted`. */
  draft(drafted: Map<string, string>): AuthorityFiles {
    return new AuthorityFiles(this.#directory, this.#runAsOwner, drafted)
  }

  get paths(): string[] {
    const pairs = ['root', 'intermediate', 'server'].flatMap((role) => [
      this.#path(role, 'key'),
      this.#path(role, 'crt'),
    ])
    return [this.#trustDomainPath, ...pairs]
  }

  /** The server certificate is written last: if it exists, everything does. */
  exists(): boolean {
    return existsSync(this.#path('server', 'crt'))
  }

  /** @throws an error with the path if a file is missing, or cannot be used */
  read(): AuthorityState {
    const [root, ...above] = this.#readCertificates('root')
    const [server, ...formerServers] = this.#readCertificates('server')
    const former = existsSync(this.#path('former', 'crt')) ? this.#readCertificates('former') : []
    const intermediate = this.#readCertificates('intermediate')[0] as X509Certificate
    const current = [intermediate, root as X509Certificate, ...above]
    const previousRoot = above.find(isSelfSigned)
    const crossCertificate = above.find((certificate) => !isSelfSigned(certificate))
    return {
      trustDomain: this.#parse('trust-domain', (text) => text.trim()),
      root: root as X509Certificate,
      replacement: previousRoot && crossCertificate && { previousRoot, crossCertificate },
      intermediate: this.#withKey('intermediate', intermediate),
      // A process that was killed after it listed an authority as former may not have replaced it yet.
      former: former.filter(({ raw }) => !current.some((certificate) => certificate.raw.equals(raw))),
      server: this.#withKey('server', server as X509Certificate),
      formerServers,
    }
  }

  /** @throws KeyFileError if the file is missing, or does not hold the key of this root */
  readRootKey(root: X509Certificate): KeyObject {
    return this.#withKey('root', root).key
  }

  /** Removes the temporary files of writes that a kill interrupted: they may contain keys. */
  removeUnfinished(): void {
    if (this.#drafted) return
    this.#runAsOwner(() => {
      for (const name of readdirSync(this.#directory)) if (isUnfinished(name)) rmSync(join(this.#directory, name))
    })
  }

  /** Writes the files of a new authority. */
  create(trustDomain: string, pairs: Readonly<Record<'root' | 'intermediate' | 'server', KeyedCertificate>>): void {
    this.#runAsOwner(() => {
      this.#write('trust-domain', `${trustDomain}\n`)
      for (const [role, { key, certificate }] of Object.entries(pairs)) {
        this.#writeKeys(role, [key])
        this.#writeCertificates(role, [certificate])
      }
    })
  }

  /** Writes the files of an authority that exists elsewhere; the key of its root may be stored there only. */
  adopt({ trustDomain, root, intermediate, former, server }: AdoptedAuthority): void {
    this.#runAsOwner(() => {
      this.#write('trust-domain', `${trustDomain}\n`)
      if (root.key) this.#writeKeys('root', [root.key])
      this.#writeCertificates('root', [root.certificate])
      this.#writeKeys('intermediate', [intermediate.key])
      this.#writeCertificates('intermediate', [intermediate.certificate])
      if (former.length > 0) this.#writeCertificates('former', former)
      this.#writeKeys('server', [server.key])
      this.#writeCertificates('server', [server.certificate])
    })
  }

  writeServer(certificate: X509Certificate, formerServers: readonly X509Certificate[]): void {
    this.#runAsOwner(() => this.#writeCertificates('server', [certificate, ...formerServers]))
  }

  writeFormer(former: readonly X509Certificate[]): void {
    this.#runAsOwner(() => this.#writeCertificates('former', former))
  }

  writeIntermediate(intermediate: KeyedCertificate): void {
    this.#runAsOwner(() => this.#replace('intermediate', intermediate, []))
  }

  writeRoot(root: KeyedCertificate, { previousRoot, crossCertificate }: RootReplacement): void {
    this.#runAsOwner(() => this.#replace('root', root, [crossCertificate, previousRoot]))
  }

  /** The new root remains alone. */
  endReplacement(root: X509Certificate): void {
    this.#runAsOwner(() => this.#writeCertificates('root', [root]))
  }

  #replace(role: string, { key, certificate }: KeyedCertificate, others: readonly X509Certificate[]): void {
    this.#writeKeys(role, [key, ...this.#readKeys(role)])
    this.#writeCertificates(role, [certificate, ...others])
    this.#writeKeys(role, [key])
  }

  #writeKeys(role: string, keys: readonly KeyObject[]): void {
    this.#write(`${role}.key`, keys.map(toKeyPem).join(''))
  }

  #writeCertificates(role: string, certificates: readonly X509Certificate[]): void {
    this.#write(`${role}.crt`, certificates.map(toCertificatePem).join(''))
  }

  #write(name: string, content: string): void {
    if (this.#drafted) this.#drafted.set(name, content)
    else writePrivateFile(join(this.#directory, name), content)
  }

  /** @throws an error with the path, which those of OpenSSL lack, if the file cannot be read or parsed */
  #parse<T>(name: string, parse: (content: string) => T): T {
    const path = join(this.#directory, name)
    try {
      return parse(this.#drafted?.get(name) ?? readFileSync(path, 'utf8'))
    } catch (error) {
      throw new Error(`${path} cannot be used: ${(error as Error).message}`, { cause: error })
    }
  }

  #readCertificates(role: string): X509Certificate[] {
    const path = this.#path(role, 'crt')
    const certificates = this.#parse(`${role}.crt`, (text) =>
      parsePemBlocks(text).map(({ bytes }) => new X509Certificate(bytes)),
    )
    if (certificates.length === 0) throw new Error(`${path} cannot be used: it holds no certificate`)
    return certificates
  }

  #withKey(role: string, certificate: X509Certificate): KeyedCertificate {
    const path = this.#path(role, 'key')
    const keys = this.#readKeys(role)
    if (keys.length === 0) throw new KeyFileError(`${path} cannot be used: it holds no key`)
    const key = keys.find((candidate) => certificate.checkPrivateKey(candidate))
    if (key) return { certificate, key }
    throw new KeyFileError(`${path} does not hold the key of the certificate beside it`)
  }

  #readKeys(role: string): KeyObject[] {
    const path = this.#path(role, 'key')
    if (!existsSync(path)) throw new KeyFileError(`${path} is missing: restore it from where it is stored`)
    return this.#parse(`${role}.key`, (text) =>
      parsePemBlocks(text)
        .filter(({ label }) => label.endsWith('PRIVATE KEY'))
        .map(({ label, bytes }) => createPrivateKey(toPem(label, bytes))),
    )
  }

  get #trustDomainPath(): string {
    return join(this.#directory, 'trust-domain')
  }

  #path(role: string, ending: 'crt' | 'key'): string {
    return join(this.#directory, `${role}.${ending}`)
  }
}
