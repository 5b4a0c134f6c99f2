/**
 * The packages that `npm run build` bundles into `dist/vendor`, one file for each, so that users do
 * not install them. A checkout imports them from node_modules; the build makes the imports of the
 * compiled modules point to these files.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { loadSync } from '@grpc/proto-loader'
import { build, type Plugin } from 'esbuild'
import { descriptorSetOf } from './descriptor-set.ts'

/** What each file exports. */
const vendored: Readonly<Record<string, string>> = {
  '@grpc/reflection': '{ ReflectionService }',
  '@jitl/quickjs-wasmfile-release-sync': '{ default }',
  '@peculiar/x509': '*',
  croner: '{ Cron }',
  diff: '{ diffArrays }',
  elkjs: '{ default }',
  'grpc-health-check': '{ HealthImplementation, service }',
  pg: '{ default }',
  'prom-client': '{ Gauge, Registry, collectDefaultMetrics }',
  'quickjs-emscripten-core': '*',
  re2js: '{ RE2JS }',
  saxes: '{ SaxesParser }',
  yauzl: '{ fromBufferPromise }',
}

const quickjs_wasm = 'node_modules/@jitl/quickjs-wasmfile-release-sync/dist/emscripten-module.wasm'

/** What CommonJS modules expect to be there, also where a user bundles them again. */
const common_js = [
  `import { createRequire as requireFrom } from 'node:module'`,
  'const require = requireFrom(import.meta.url ?? __filename)',
  `const __dirname = import.meta.dirname ?? '.'`,
  '',
].join('\n')

/** Puts in place of a .proto file that is read at run time what it compiles to. */
const protosInside: Plugin = {
  name: 'protos-inside',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/](?:health|reflection-v1(?:alpha)?)\.js$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      const file = /'(?:\.\.\/\.\.\/proto\/)?((?:grpc|health)\/[a-z0-9/]+\.proto)'/.exec(text)?.[1]
      const call = /(loadSync\)?\()(?:protoPath|'health\/v1\/health\.proto')/
      if (file === undefined || !call.test(text)) throw new Error(`${path} loads no .proto file`)
      const folder = join(dirname(path), '../../proto')
      const loaded = loadSync(file, { includeDirs: [folder] })
      const files = Object.values(loaded).flatMap((one) =>
        'fileDescriptorProtos' in one ? [one.fileDescriptorProtos] : [],
      )[0] as Buffer[]
      const set = `Buffer.from('${descriptorSetOf(files).toString('base64')}', 'base64')`
      const put = (_: string, load: string) =>
        load.replace('loadSync', 'loadFileDescriptorSetFromBuffer') + set
      return { contents: text.replace(call, put) }
    })
  },
}

export interface VendorFile {
  readonly name: string
  readonly contents: string
}

/** The files of `dist/vendor`, and the source files of packages that are in them, from `top`. */
export async function bundleVendored(
  top: string,
): Promise<{ readonly files: readonly VendorFile[]; readonly inputs: readonly string[] }> {
  const made = await Promise.all(
    Object.entries(vendored).map(async ([name, exported]) => {
      const { outputFiles, metafile } = await build({
        absWorkingDir: top,
        stdin: { contents: `export ${exported} from '${name}'`, resolveDir: top },
        write: false,
        metafile: true,
        bundle: true,
        minify: true,
        keepNames: true,
        platform: 'node',
        mainFields: ['module', 'main'],
        format: 'esm',
        target: 'node20.19',
        charset: 'utf8',
        legalComments: 'none',
        preserveSymlinks: true,
        external: ['@grpc/grpc-js', '@grpc/proto-loader', 'pg-native', 'web-worker'],
        plugins: [protosInside],
        logLevel: 'error',
      })
      const text = outputFiles[0]?.text ?? ''
      const contents = /\b(?:require|__dirname)\b/.test(text) ? common_js + text : text
      const inputs = Object.keys(metafile.inputs).filter((path) => path.includes('node_modules/'))
      return { file: { name: `${fileNameOf(name)}.js`, contents }, inputs }
    }),
  )
  return {
    files: made.map(({ file }) => file),
    inputs: [...made.flatMap(({ inputs }) => inputs), quickjs_wasm],
  }
}

/** Writes the files into `out/vendor`, and makes the modules of `out` import them. */
export async function vendor(top: string, out: string): Promise<void> {
  const folder = join(out, 'vendor')
  const { files } = await bundleVendored(top)
  mkdirSync(folder, { recursive: true })
  for (const { name, contents } of files) writeFileSync(join(folder, name), contents)
  // The one whose types are part of ours.
  cpSync(join(top, 'node_modules/prom-client/index.d.ts'), join(folder, 'prom-client.d.ts'))
  cpSync(join(top, quickjs_wasm), join(out, 'src/executors/quickjs.wasm'))
  for (const path of modulesOf(out)) {
    const text = readFileSync(path, 'utf8')
    const here = relative(dirname(path), folder).replaceAll('\\', '/')
    const changed = text.replaceAll(
      /\b(from\s*|import\s*\(?\s*)(["'])([^"'.][^"']*)\2/g,
      (whole, before, quote, name) =>
        name in vendored ? `${before}${quote}${here}/${fileNameOf(name)}.js${quote}` : whole,
    )
    if (changed !== text) writeFileSync(path, changed)
  }
}

function modulesOf(out: string): string[] {
  return ['src', 'bin'].flatMap((folder) =>
    readdirSync(join(out, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(?:d\.ts|js)$/.test(path))
      .map((path) => join(out, folder, path)),
  )
}

function fileNameOf(name: string): string {
  return name.replace('@', '').replaceAll('/', '-')
}
