/**
 * Loads `@peculiar/x509`, which is needed only where certificates are made.
 *
 * Its container asks for three functions of the decorator-metadata proposal while its classes are
 * defined, finds nothing in them, and never asks again. They are lent to `Reflect` for as long as
 * the package loads, so that nothing of it stays behind in the process.
 */

export type X509 = typeof import('@peculiar/x509')

let loaded: Promise<X509> | undefined

export function loadX509(): Promise<X509> {
  loaded ??= load()
  return loaded
}

const lent = ['getMetadata', 'getOwnMetadata', 'defineMetadata'] as const

async function load(): Promise<X509> {
  const missing = lent.filter((name) => !Object.hasOwn(Reflect, name))
  for (const name of missing) {
    Object.defineProperty(Reflect, name, { value: () => undefined, configurable: true })
  }
  try {
    return await import('@peculiar/x509')
  } finally {
    for (const name of missing) Reflect.deleteProperty(Reflect, name)
  }
}
