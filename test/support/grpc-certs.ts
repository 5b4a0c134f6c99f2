/**
 * Certificates for tests, valid and invalid ones, made in memory.
 */
import { createHash, webcrypto } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadX509 } from '../../src/certs/x509.ts'

export interface TestCertificate {
  readonly cert: Buffer
  readonly key: Buffer
  /** Lower hex. */
  readonly sha256: string
  readonly keys: webcrypto.CryptoKeyPair
}

export interface Wanted {
  readonly cn?: string | null
  readonly san?: readonly { type: 'url' | 'dns' | 'email' | 'ip'; value: string }[]
  /** Empty: the extension is left out. */
  readonly usage?: readonly ('clientAuth' | 'serverAuth')[]
  /** Days from now; default 1 before and 1 after. */
  readonly from_days?: number
  readonly to_days?: number
  readonly to?: Date
  /** Undefined: signed by itself. */
  readonly by?: TestCertificate | undefined
  readonly is_ca?: boolean
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const day_ms = 86_400_000
let serial = 1

export async function makeCertificate(wanted: Wanted): Promise<TestCertificate> {
  const x509 = await loadX509()
  const { cn = 'test', san = [], usage = [], from_days = -1, to_days = 1, is_ca = false } = wanted
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair
  const subject = cn === null ? 'O=test' : `CN=${cn}`
  const issuer = wanted.by ? new x509.X509Certificate(wanted.by.cert).subject : subject
  const made = await x509.X509CertificateGenerator.create({
    serialNumber: (0x1000 + serial++).toString(16),
    subject,
    issuer,
    notBefore: new Date(Date.now() + from_days * day_ms),
    notAfter: wanted.to ?? new Date(Date.now() + to_days * day_ms),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: (wanted.by ?? { keys }).keys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(is_ca, undefined, true),
      ...(usage.length === 0
        ? []
        : [new x509.ExtendedKeyUsageExtension(usage.map((one) => x509.ExtendedKeyUsage[one]))]),
      ...(san.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension([...san])]),
    ],
  })
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)
  return {
    cert: Buffer.from(made.toString('pem')),
    key: Buffer.from(x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')),
    sha256: createHash('sha256').update(Buffer.from(made.rawData)).digest('hex'),
    keys,
  }
}

export function makeCa(cn = 'test CA'): Promise<TestCertificate> {
  return makeCertificate({ cn, is_ca: true })
}

export function makeClient(by: TestCertificate, more: Wanted = {}): Promise<TestCertificate> {
  return makeCertificate({ by, usage: ['clientAuth'], ...more })
}

export function makeServer(by: TestCertificate): Promise<TestCertificate> {
  const san = [
    { type: 'dns', value: 'localhost' },
    { type: 'ip', value: '127.0.0.1' },
  ] as const
  return makeCertificate({ by, cn: 'localhost', san, usage: ['serverAuth'] })
}

const made: string[] = []
process.on('exit', () => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true })
})

/** Goes with the process. */
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'conveyor-tls-'))
  made.push(folder)
  return folder
}

/** A folder as `serve --tls` reads it, with a client in it. */
export function writeFolder(
  ca: TestCertificate,
  server: TestCertificate,
  client?: TestCertificate,
  folder: string = newFolder(),
): string {
  writeFileSync(join(folder, 'ca.crt'), ca.cert)
  writeFileSync(join(folder, 'server.crt'), server.cert)
  writeFileSync(join(folder, 'server.key'), server.key)
  if (client) {
    writeFileSync(join(folder, 'client.crt'), client.cert)
    writeFileSync(join(folder, 'client.key'), client.key)
  }
  return folder
}

export interface Authority {
  readonly ca: TestCertificate
  readonly server: TestCertificate
  /** Carries no name that is bound. */
  readonly client: TestCertificate
  readonly folder: string
}

export async function newAuthority(): Promise<Authority> {
  const ca = await makeCa()
  const server = await makeServer(ca)
  const client = await makeClient(ca, { san: [{ type: 'url', value: 'conveyor:test' }] })
  return { ca, server, client, folder: writeFolder(ca, server, client) }
}

let shared: Promise<Authority> | undefined

/** One set for all servers of a test file. */
export function sharedAuthority(): Promise<Authority> {
  shared ??= newAuthority()
  return shared
}
