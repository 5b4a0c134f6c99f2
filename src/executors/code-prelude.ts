/**
 * The JavaScript that runs in the sandbox before any code. It keeps references to the built-in
 * objects it uses, so code that changes them changes only its own result. It provides `data`,
 * `require`, a no-op `console`, and a `Math.random` that is seeded per run (sfc32), because a
 * restored image would repeat QuickJS's own seed. Not for secrets.
 */
import { codeLibraries } from '../process/logics/code-libraries.ts'

export const prelude_names = ['load', 'begin', 'end', 'describe', 'stack'] as const

/** Names of the scope that a library's text expects; the text is the body of a function. */
export const library_scope = 'module, exports, require, window'

const console_names =
  'assert clear count countReset debug dir dirxml error exception group groupCollapsed groupEnd ' +
  'info log profile profileEnd table time timeEnd timeLog timeStamp trace warn'

/** [name, library, global] of each name that `require` knows. */
const table = Object.entries(codeLibraries).flatMap(([library, { names, global }]) =>
  names.map((name) => [`libs/${name}`, library, global]),
)

export const prelude_src = `(() => {
  const { parse, stringify } = JSON, text = String, Failure = Error
  const define = (name, value) => Object.defineProperty(globalThis, name,
    { value, writable: true, configurable: true, enumerable: false })

  let a = 0, b = 0, c = 0, d = 0
  const bits = () => {
    const sum = (a + b | 0) + d | 0
    d = d + 1 | 0
    a = b ^ b >>> 9
    b = c + (c << 3) | 0
    c = (c << 21 | c >>> 11) + sum | 0
    return sum >>> 0
  }
  Math.random = function random() {
    return ((bits() >>> 5) * 0x4000000 + (bits() >>> 6)) / 0x20000000000000
  }
  const crypto = {
    getRandomValues(array) {
      for (let at = 0; at < array.length; at++) array[at] = bits()
      return array
    },
  }

  const silent = {}
  for (const name of ${JSON.stringify(console_names.split(' '))}) silent[name] = () => {}
  define('console', silent)

  const loaded = new Map(), has = loaded.has.bind(loaded), get = loaded.get.bind(loaded)
  const known = { __proto__: null }
  for (const [name, library, global] of ${JSON.stringify(table)}) {
    known[name] = known[name + '.js'] = { library, global }
  }
  define('require', function require(name) {
    const one = typeof name === 'string' ? known[name] : undefined
    if (one === undefined) {
      throw new Failure('require(' + stringify(name) + ') is not served: there is no such library')
    }
    const { library, global } = one
    if (!has(library)) {
      throw new Failure('require("' + name + '") is served where the code names it in quotes')
    }
    // By assignment: a variable of the same name in the code could not be defined again.
    return globalThis[global] = get(library)
  })

  return {
    load(library, body) {
      const module = { exports: {} }
      body.call(globalThis, module, module.exports, get, { crypto })
      loaded.set(library, module.exports)
    },
    begin(data, seed) {
      globalThis.data = parse(data)
      ;[a, b, c, d] = parse(seed)
    },
    end: (data) => stringify(data),
    describe(thrown) {
      if (typeof thrown !== 'object' || thrown === null) return text(thrown)
      const { name, message } = thrown
      if (typeof message !== 'string') return stringify(thrown)
      return typeof name === 'string' && name !== 'Error' ? name + ': ' + message : message
    },
    stack: (thrown) => thrown.stack,
  }
})()`
