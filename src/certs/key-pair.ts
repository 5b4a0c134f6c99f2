/** The test for a client certificate with its private key, as a TLS connection presents it. */
import { createPrivateKey, X509Certificate } from 'node:crypto'

/**
 * Whether `pem` has a client certificate and its private key, in either order and without a
 * password. Never throws.
 */
export function isKeyPair(pem: string): boolean {
  try {
    return new X509Certificate(pem).checkPrivateKey(createPrivateKey(pem))
  } catch {
    return false
  }
}
