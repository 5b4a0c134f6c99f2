/**
 * The imports that load gRPC, metrics, pino, or a package that only some definitions and imports
 * need (zip files, XML, libraries of code): neither embedding the engine, nor the HTTP client, nor
 * the command line does.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'

import { test } from 'node:test'
import { codePath, node_flags, top } from './support/package-folder.ts'

const heavy =
  /node_modules\/(yauzl|saxes|pino|@opentelemetry|moment.*|prom-client|crypto-js|xregexp|@grpc|@peculiar|protobufjs|grpc-.*)\//

/** [what is run, whether it loads any of them] */
// biome-ignore format: a table
const programs: readonly (readonly [string, boolean])[] = [
  ["await import('src/index')",                                                    false],
  ["await import('src/http')",                                                     false],
  ["await import('src/cli/main')",                                           false],
  ["const { openEngine } = await import('src/index'); await (await openEngine(':memory:')).close()", false],
  ["await import('src/executors/call')",                                           false],
  ["await import('src/operator')",                                                 false],
  ["await import('src/client')",                                                   false],
  ["const { connect } = await import('src/client'); await connect({ url: 'http://h', user: 1, secret: 's' })", false],
  ["await import('src/files')",                                                    false],
  ["await import('src/grpc')",                                                     true],
  ["await import('src/metrics')",                                                  true],
]

for (const [program, loads] of programs) {
  test(`${program}: ${loads ? 'loads what it needs' : 'loads none of them'}`, () => {
    // The packages are CommonJS, so the cache of require lists those that were loaded.
    const told = `${program.replaceAll(/import\('([^']+)'\)/g, (_, module) => `import(${JSON.stringify(codePath(module))})`)}
      const { createRequire } = await import('node:module')
      console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)))`
    const args = [...node_flags, '--input-type=module', '-e', told]
    const out = execFileSync(process.execPath, args, { cwd: top, encoding: 'utf8' })
    const files = JSON.parse(out) as string[]
    assert.equal(
      files.some((file) => heavy.test(file)),
      loads,
    )
  })
}
