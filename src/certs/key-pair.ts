/**
 * Whether a PEM text is a client certificate with its private key, as a TLS connection presents it.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'

/** The two may come in either order; a key that needs a password is none. Never throws. */
export function isKeyPair(pem: string): boolean {
  try {
    return new X509Certificate(pem).checkPrivateKey(createPrivateKey(pem))
  } catch {
    return false
  }
}
