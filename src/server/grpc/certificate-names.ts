/**
 * The names in a certificate (wire 2), read from its DER: `uri:` and `dns:` of its alternative
 * names, `cn:` only where it has no alternative names at all, and `sha256:` with the fingerprint.
 *
 * The text that node makes of the same names is not looked at: it is one string, in which a name
 * may hold what separates it from the next. Other kinds of alternative names are no names here, and
 * still keep the common name from being one.
 */
import { createHash } from 'node:crypto'
import type { X509 } from '../../certs/x509.ts'

export interface Names {
  readonly names: readonly string[]
  /** The certificate holds before this time and no longer. */
  readonly ends_ms: number
  /** Whether it says that it may be used by a client of TLS. */
  readonly is_client: boolean
}

/** Throws what the parser throws where the bytes are no certificate. */
export function namesOf(x509: X509, der: Buffer): Names {
  const certificate = new x509.X509Certificate(der)
  const usage = certificate.getExtension(x509.ExtendedKeyUsageExtension)
  return {
    names: [
      ...ownNames(x509, certificate),
      `sha256:${createHash('sha256').update(der).digest('hex')}`,
    ],
    ends_ms: certificate.notAfter.getTime(),
    is_client: usage?.usages.includes(x509.ExtendedKeyUsage.clientAuth) ?? false,
  }
}

type Certificate = InstanceType<X509['X509Certificate']>

function ownNames(x509: X509, certificate: Certificate): string[] {
  const alternative = certificate.getExtension(x509.SubjectAlternativeNameExtension)
  if (alternative === null) return certificate.subjectName.getField('CN').map((cn) => `cn:${cn}`)
  return alternative.names.items.flatMap(({ type, value }) =>
    type === 'url' ? [`uri:${value}`] : type === 'dns' ? [`dns:${value}`] : [],
  )
}
