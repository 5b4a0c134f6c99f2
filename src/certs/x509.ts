/**
 * Loads `@peculiar/x509`, only to create certificates. Its dependency container needs three
 * functions of the decorator-metadata proposal, which are in `Reflect` only while the package
 * loads.
 */
export type X509 = typeof import('@peculiar/x509')

let loaded: Promise<X509> | undefined

export function loadX509(): Promise<X509> {
  loaded ??= load()
  return loaded
}

const metadata_functions = ['getMetadata', 'getOwnMetadata', 'defineMetadata'] as const

async function load(): Promise<X509> {
  const missing = metadata_functions.filter((name) => !Object.hasOwn(Reflect, name))
  for (const name of missing) {
    Object.defineProperty(Reflect, name, { value: () => undefined, configurable: true })
  }
  try {
    return await import('@peculiar/x509')
  } finally {
    for (const name of missing) Reflect.deleteProperty(Reflect, name)
  }
}
