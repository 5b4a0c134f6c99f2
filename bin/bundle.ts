/**
 * `npm run bundle [-- FILE]`: builds the library and the HTTP server into one file,
 * `dist/conveyor.mjs`, which needs only Node and `lmdb` beside it.
 *
 * The file embeds the other dependencies, the example processes (`examples`, by file name), the
 * native file lock for each platform of lmdb, and at the end the licences of the dependencies.
 * Names are not minified, so that stack traces stay readable.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'esbuild'
import { libraryFiles } from '../src/executors/code-library-files.ts'
import { code_library_paths, noticesOf, packageFolders } from './carried.ts'
import { addon_package, lockAddons } from './lock-addons.ts'

const top = fileURLToPath(new URL('..', import.meta.url))
const out = resolve(process.argv[2] ?? join(top, 'dist/conveyor.mjs'))

/** Replaces the module that loads the lock's native file from a folder by one with its bytes. */
const addonInside: Plugin = {
  name: 'addon-inside',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/]store[\\/]disk[\\/]lock-addon\.ts$/ }, () => ({
      contents: [
        `import { loadAddon } from './bundled-addon.ts'`,
        `export const loadLockAddon = () => loadAddon(${JSON.stringify(packedAddons(), null, 2)})`,
      ].join('\n'),
      resolveDir: join(top, 'bin'),
    }))
  },
}

/** Embeds the script of the code threads, QuickJS, and the libraries that code may require. */
const codeInside: Plugin = {
  name: 'code-inside',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/]executors[\\/]code-script\.ts$/ }, () => ({
      contents: [
        `import { gunzipSync } from 'node:zlib'`,
        `const script = ${JSON.stringify(code.outputFiles[0]?.text)}`,
        `const wasm = ${JSON.stringify(packed(join(top, quickjs, 'emscripten-module.wasm')))}`,
        `const libraries = ${JSON.stringify(packedLibraries())}`,
        `const unpacked = (text) => gunzipSync(Buffer.from(text, 'base64'))`,
        `const options = { eval: true, execArgv: [] }`,
        `export const codeStart = () => ({ script, options })`,
        `export async function codeScript() {`,
        `  return { ...codeStart(), wasm: unpacked(wasm) }`,
        `}`,
        `export const libraryText = async (name) => unpacked(libraries[name]).toString()`,
      ].join('\n'),
    }))
  },
}

/**
 * Embeds the scripts of the scan thread and of the checkpoint process. The latter is longer than an
 * argument of a process may be: a small script reads it from standard input.
 */
const commitLogInside: Plugin = {
  name: 'commit-log-inside',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/]store[\\/]lmdb[\\/]scan-script\.ts$/ }, () => ({
      contents: [
        `const script = ${JSON.stringify(scan.outputFiles[0]?.text)}`,
        `const options = { eval: true, execArgv: [] }`,
        `export const scanScript = () => ({ script, options })`,
      ].join('\n'),
    }))
    onLoad({ filter: /[\\/]src[\\/]store[\\/]commit-log[\\/]checkpoint-script\.ts$/ }, () => ({
      contents: [
        `const text = ${JSON.stringify(checkpoint.outputFiles[0]?.text)}`,
        `const starter = ${JSON.stringify(starter)}`,
        `export function checkpointScript() {`,
        `  const bytes = String(Buffer.byteLength(text))`,
        `  return { args: ['-e', starter, '--', bytes, import.meta.url], text }`,
        `}`,
      ].join('\n'),
    }))
  },
}

const starter = `
const text = Buffer.alloc(Number(process.argv[1]))
for (let at = 0; at < text.length; ) {
  const read = require('fs').readSync(0, text, at, text.length - at)
  if (read === 0) process.exit()
  at += read
}
Function('require', text.toString())(require)`

/** A script started from text has no path to resolve from, so it loads lmdb beside the bundle. */
const lmdbBeside: Plugin = {
  name: 'lmdb-beside',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^lmdb$/ }, () => ({ path: 'lmdb', namespace: 'beside' }))
    onLoad({ filter: /^lmdb$/, namespace: 'beside' }, () => ({
      contents: [
        `const { createRequire } = require('node:module')`,
        `module.exports = createRequire(process.argv[2])('lmdb')`,
      ].join('\n'),
    }))
  },
}

const quickjs = 'node_modules/@jitl/quickjs-wasmfile-release-sync/dist'

/** A thread started from text is CommonJS, and so are its dependencies. */
const threadBuild = {
  absWorkingDir: top,
  write: false,
  metafile: true,
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20.19',
  charset: 'utf8',
  legalComments: 'none',
  preserveSymlinks: true,
} as const

const code = await build({
  ...threadBuild,
  entryPoints: ['src/executors/code-worker.ts'],
  alias: {
    '@jitl/quickjs-wasmfile-release-sync/emscripten-module': `./${quickjs}/emscripten-module.cjs`,
  },
})

const checkpoint = await build({
  ...threadBuild,
  entryPoints: ['src/store/commit-log/checkpoint-child.ts'],
  plugins: [lmdbBeside],
})

const scan = await build({ ...threadBuild, entryPoints: ['src/store/lmdb/scan-worker.ts'] })

const { outputFiles, metafile } = await build({
  absWorkingDir: top,
  stdin: { contents: entry(), resolveDir: top, sourcefile: 'conveyor.ts', loader: 'ts' },
  outfile: out,
  write: false,
  metafile: true,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  charset: 'utf8',
  legalComments: 'none',
  external: ['lmdb'],
  // File names in the output are those of the checkout, even if node_modules is a link.
  preserveSymlinks: true,
  plugins: [addonInside, codeInside, commitLogInside],
})
if (!outputFiles[0]?.text.includes('loadAddon({')) {
  throw new Error(
    'the program no longer asks src/store/disk/lock-addon.ts: its native part was left out',
  )
}
if (!outputFiles[0]?.text.includes('wasm: unpacked(wasm)')) {
  throw new Error('the program no longer asks src/executors/code-script.ts: QuickJS was left out')
}
if (!outputFiles[0]?.text.includes('"-e", starter')) {
  throw new Error('the program no longer asks src/store/commit-log/checkpoint-script.ts')
}
mkdirSync(dirname(out), { recursive: true })
writeFileSync(
  out,
  `${outputFiles[0]?.text}${licences([
    ...[code, { metafile }].flatMap((made) => Object.keys(made.metafile.inputs)),
    ...[...code_library_paths, `node_modules/${addon_package}/LICENSE`],
  ])}`,
)

function entry(): string {
  const names = readdirSync(join(top, 'src/examples')).filter((name) => name.endsWith('.json'))
  const imports = names.map((name, at) => `import e${at} from './src/examples/${name}'`)
  const members = names.map((name, at) => `${JSON.stringify(name)}: e${at}`)
  return [
    ...imports,
    `export * from './src/index.ts'`,
    `export * from './src/http.ts'`,
    `export const examples = { ${members.join(', ')} }`,
  ].join('\n')
}

function packedAddons(): Record<string, string> {
  return Object.fromEntries(lockAddons(top).map(({ place, path }) => [place, packed(path)]))
}

function packedLibraries(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(libraryFiles).map(([name, file]) => [
      name,
      packed(join(top, 'node_modules', file)),
    ]),
  )
}

function packed(path: string): string {
  return gzipSync(readFileSync(path), { level: 9 }).toString('base64')
}

/** A comment for each distinct licence of the packages that these files are of. */
function licences(paths: readonly string[]): string {
  return noticesOf(top, packageFolders(paths))
    .map((notice) => `\n/*\n${notice.replaceAll('*/', '* /')}*/\n`)
    .join('')
}
