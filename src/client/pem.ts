/**
 * Certificates and keys as a caller names them: PEM, or the path of a file that holds it.
 */
import { readFile } from 'node:fs/promises'

/** Rejects with a TypeError where it is no PEM, with the system's error where it cannot be read. */
export async function readPem(name: string, given: string | Uint8Array): Promise<Buffer> {
  const bytes =
    typeof given === 'string' && !given.includes('-----BEGIN')
      ? await readFile(given)
      : Buffer.from(given as string)
  if (bytes.includes('-----BEGIN')) return bytes
  throw new TypeError(`${name} holds no PEM`)
}
