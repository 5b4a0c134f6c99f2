/**
 * Certificates for mutual TLS: an authority, servers and clients. ECDSA on P-256 with SHA-256. A
 * certificate allows only its purpose: an authority signs (no authorities below it), a server has
 * serverAuth, a client clientAuth. A client's name is the URI `conveyor:NAME`; `user bind` takes it
 * as `uri:conveyor:NAME`.
 */
import { createHash, createPrivateKey, webcrypto, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { Chance } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import { loadX509, type X509 } from './x509.ts'

/** A certificate with its private key, in PEM; the key is unencrypted PKCS #8. */
export interface CertifiedKey {
  readonly certificate: string
  readonly key: string
}

/** The validity of a certificate, and the randomness of its serial number. */
export interface IssueOptions {
  readonly now_ms: number
  /** Validity from now. A certificate expires with its authority at the latest. */
  readonly days: number
  readonly chance: Chance
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

export async function newAuthority(options: IssueOptions): Promise<CertifiedKey> {
  const x509 = await loadX509()
  const keys = await newKeys()
  const { KeyUsageFlags: usage } = x509
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialOf(options.chance),
    name: [{ CN: ['Conveyor CA'] }],
    ...span(options),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(usage.keyCertSign | usage.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: pem(certificate.toString('pem')), key: await keyPem(x509, keys) }
}

/** `hosts` are names and IP addresses. */
export function issueServer(
  authority: CertifiedKey,
  hosts: readonly string[],
  options: IssueOptions,
): Promise<CertifiedKey> {
  const names = hosts.map(
    (host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }) as const,
  )
  return issue(authority, { name: hosts[0] as string, usage: 'serverAuth', names }, options)
}

export function issueClient(
  authority: CertifiedKey,
  name: string,
  options: IssueOptions,
): Promise<CertifiedKey> {
  const names = [{ type: 'url', value: clientUri(name) }] as const
  return issue(authority, { name, usage: 'clientAuth', names }, options)
}

export function clientUri(name: string): string {
  return `conveyor:${name}`
}

/** SHA-256 of the certificate's DER in 64 hex digits, as in a `sha256:` name. */
export function fingerprintOf(certificate: string): string {
  return createHash('sha256').update(derOf(certificate)).digest('hex')
}

interface Leaf {
  readonly name: string
  readonly usage: 'serverAuth' | 'clientAuth'
  readonly names: readonly { readonly type: 'dns' | 'ip' | 'url'; readonly value: string }[]
}

/** The certificate of the key. During a change of authority `ca.crt` contains both certificates. */
function certificateOf({ certificate, key }: CertifiedKey): string {
  const blocks = certificate.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  const private_key = createPrivateKey(key)
  const own = blocks?.find((block) => new X509Certificate(block).checkPrivateKey(private_key))
  if (own === undefined) throw fault('not_possible', 'ca.key does not belong to ca.crt')
  return own
}

async function issue(
  authority: CertifiedKey,
  leaf: Leaf,
  options: IssueOptions,
): Promise<CertifiedKey> {
  const x509 = await loadX509()
  const issuer = new x509.X509Certificate(certificateOf(authority))
  const { notBefore, notAfter } = span(options)
  if (issuer.notAfter.getTime() <= options.now_ms) {
    throw fault('not_possible', 'the authority has expired')
  }
  const keys = await newKeys()
  const { KeyUsageFlags: usage } = x509
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialOf(options.chance),
    subject: [{ CN: [leaf.name] }],
    issuer: issuer.subjectName.toJSON(),
    notBefore,
    notAfter: notAfter < issuer.notAfter ? notAfter : issuer.notAfter,
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: await privateKeyOf(authority.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(usage.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage[leaf.usage]]),
      new x509.SubjectAlternativeNameExtension([...leaf.names]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: pem(certificate.toString('pem')), key: await keyPem(x509, keys) }
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  const made = webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  return made as Promise<webcrypto.CryptoKeyPair>
}

async function privateKeyOf(key: string): Promise<webcrypto.CryptoKey> {
  try {
    return await webcrypto.subtle.importKey('pkcs8', derOf(key), algorithm, false, ['sign'])
  } catch (cause) {
    const text = "the authority's key is no PKCS #8 key on P-256, as `certs init` makes one"
    throw fault('not_possible', text, { cause })
  }
}

async function keyPem(x509: X509, keys: webcrypto.CryptoKeyPair): Promise<string> {
  const bytes = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)
  return pem(x509.PemConverter.encode(bytes as ArrayBuffer, 'PRIVATE KEY'))
}

function derOf(text: string): Buffer {
  return Buffer.from(text.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64')
}

function pem(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`
}

/** Backdates certificates for peers whose clocks are behind. */
const grace_ms = 5 * 60_000
const day_ms = 86_400_000

function span({ now_ms, days }: IssueOptions): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(now_ms - grace_ms), notAfter: new Date(now_ms + days * day_ms) }
}

/** 16 bytes as a positive number (RFC 5280, 4.1.2.2). */
function serialOf(chance: Chance): string {
  const bytes = chance.bytes(16)
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40
  return bytes.toString('hex')
}
