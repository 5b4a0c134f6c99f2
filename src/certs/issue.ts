/**
 * Certificates for mutual TLS: an authority, and the servers and clients it vouches for. ECDSA on
 * P-256 with SHA-256 throughout. Nothing here touches a file.
 *
 * A certificate says what its key is for and nothing more: an authority signs and has no
 * authorities below it, a server's is for serverAuth, a client's for clientAuth. A client carries
 * its name as the URI `conveyor:NAME`, which is what `user bind` calls `uri:conveyor:NAME`.
 */
import { createHash, createPrivateKey, webcrypto, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { Chance } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import { loadX509, type X509 } from './x509.ts'

/** Two PEM texts; the key is PKCS #8 and not encrypted. */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

/** When a certificate holds, and the chance its serial number is drawn from. */
export interface Validity {
  readonly now_ms: number
  /** From now; a certificate ends with its authority at the latest. */
  readonly days: number
  readonly chance: Chance
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** A new authority, signed by itself. */
export async function newAuthority(term: Validity): Promise<KeyPair> {
  const x509 = await loadX509()
  const keys = await newKeys()
  const { KeyUsageFlags: usage } = x509
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialOf(term.chance),
    name: [{ CN: ['Conveyor CA'] }],
    ...span(term),
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

/** A server that is called by one of `hosts`: names and IP addresses. */
export function issueServer(
  authority: KeyPair,
  hosts: readonly string[],
  term: Validity,
): Promise<KeyPair> {
  const names = hosts.map(
    (host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }) as const,
  )
  return issue(authority, { name: hosts[0] as string, usage: 'serverAuth', names }, term)
}

/** A client called `name`. */
export function issueClient(authority: KeyPair, name: string, term: Validity): Promise<KeyPair> {
  const names = [{ type: 'url', value: clientUri(name) }] as const
  return issue(authority, { name, usage: 'clientAuth', names }, term)
}

/** What stands in the certificate of the client `name`, as a URI. */
export function clientUri(name: string): string {
  return `conveyor:${name}`
}

/** SHA-256 over the certificate's DER, 64 hex digits: what a `sha256:` name holds. */
export function fingerprintOf(certificate: string): string {
  return createHash('sha256').update(derOf(certificate)).digest('hex')
}

interface Leaf {
  readonly name: string
  readonly usage: 'serverAuth' | 'clientAuth'
  readonly names: readonly { readonly type: 'dns' | 'ip' | 'url'; readonly value: string }[]
}

/** While one authority follows another both stand in the file: the one that the key belongs to. */
function certificateOf({ certificate, key }: KeyPair): string {
  const blocks = certificate.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  const private_key = createPrivateKey(key)
  const own = blocks?.find((block) => new X509Certificate(block).checkPrivateKey(private_key))
  if (own === undefined) throw fault('not_possible', 'ca.key does not belong to ca.crt')
  return own
}

async function issue(authority: KeyPair, leaf: Leaf, term: Validity): Promise<KeyPair> {
  const x509 = await loadX509()
  const issuer = new x509.X509Certificate(certificateOf(authority))
  const { notBefore, notAfter } = span(term)
  if (issuer.notAfter.getTime() <= term.now_ms) {
    throw fault('not_possible', 'the authority has expired')
  }
  const keys = await newKeys()
  const { KeyUsageFlags: usage } = x509
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialOf(term.chance),
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
  return webcrypto.subtle.generateKey(algorithm, true, [
    'sign',
    'verify',
  ]) as Promise<webcrypto.CryptoKeyPair>
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

/** So that a neighbour whose clock is a little behind takes a new certificate at once. */
const grace_ms = 5 * 60_000
const day_ms = 86_400_000

function span({ now_ms, days }: Validity): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(now_ms - grace_ms), notAfter: new Date(now_ms + days * day_ms) }
}

/** 16 bytes as a positive number (RFC 5280, 4.1.2.2). */
function serialOf(chance: Chance): string {
  const bytes = chance.bytes(16)
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40
  return bytes.toString('hex')
}
