/**
 * What hostile callers do, with its stated answers: HTTP framing that proxies read in two ways, JSON
 * that parsers read in two ways, signatures that are nearly right, in the path and in headers; gRPC
 * and HTTP/2; rights of users and names of certificates; calls that lead inwards; code that looks
 * for the host. After each a good one is served. The try at place k is row `seed + k`.
 *
 * One child tries all: each control is a part of the program that can be made worse as it runs.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { whenWorse, worse_variable } from '../support/hostile/row.ts'
import type { Trial } from '../support/hostile/vectors-child.ts'
import { buildChild, type Edit } from '../support/store-child.ts'
import type { Experiment, Given, Outcome, Proof } from './proof.ts'

interface Worse {
  readonly name: string
  readonly says: string
  /** The class of which it fails rows, and which of them are tried. */
  readonly only: readonly [name: string, says: string]
  readonly edit: Edit
}

const worse: readonly Worse[] = [
  {
    ...{
      name: 'framing',
      says: 'a server that looks at no framing',
      only: ['HTTP', 'path: (?!.*Transfer)'],
    },
    edit: {
      file: 'server/http/check-head.ts',
      from: '  checkFraming(context.limits, request)\n',
      to: `  if (!${whenWorse('framing')}) checkFraming(context.limits, request)\n`,
    },
  },
  {
    ...{
      name: 'encoding',
      says: 'a parser that takes any encoding',
      only: ['JSON', 'path: .*(UTF|character|slash)'],
    },
    edit: {
      file: 'codec/request-body.ts',
      from: '  checkUtf8(body)\n',
      to: `  if (!${whenWorse('encoding')}) checkUtf8(body)\n`,
    },
  },
  {
    ...{ name: 'signature', says: 'a server that compares no signature in headers' },
    only: ['signature', 'hmac: '],
    edit: {
      file: 'server/http/authenticate.ts',
      from: 'if (!isSignedBy(secrets, kind, timestamp, body, signature))',
      to: `if (!(${whenWorse('signature')} && kind !== "path") && !isSignedBy(secrets, kind, timestamp, body, signature))`,
    },
  },
  {
    ...{
      name: 'metadata',
      says: 'a gRPC server without a bound of metadata',
      only: ['gRPC', 'value'],
    },
    edit: {
      file: 'server/grpc/call.ts',
      from: '  checkSize(metadata, context.limits)\n',
      to: `  if (!${whenWorse('metadata')}) checkSize(metadata, context.limits)\n`,
    },
  },
  {
    ...{
      name: 'rights',
      says: 'an engine for which any right is enough',
      only: ['access', '^create with'],
    },
    edit: {
      file: 'engine/tasks/ops.ts',
      from: '(from.grantBits(user, conv_id) & grant_bits[op.type])',
      to: `(from.grantBits(user, conv_id) & (${whenWorse('rights')} ? 7 : grant_bits[op.type]))`,
    },
  },
  {
    ...{
      name: 'strict',
      says: 'a strict gRPC server that is not',
      only: ['certificates', 'nothing bound'],
    },
    edit: {
      file: 'server/grpc/authenticate.ts',
      from: 'engine.callerOf(names, strict)',
      to: `engine.callerOf(names, !${whenWorse('strict')} && strict)`,
    },
  },
  {
    ...{
      name: 'carried',
      says: 'addresses that are not looked for in others',
      only: ['addresses', 'a name at "(::|64|2002)'],
    },
    edit: {
      file: 'executors/call-address.ts',
      from: 'if (carried !== undefined) {',
      to: `if (carried !== undefined) {\n    if (${whenWorse('carried')}) return undefined`,
    },
  },
  {
    ...{
      name: 'kept',
      says: 'a sandbox that keeps what code has left in it',
      only: ['sandbox', 'toJSON'],
    },
    edit: {
      file: 'executors/code-sandbox.ts',
      from: '    restore(memory, ',
      to: `    if (!${whenWorse('kept')}) restore(memory, `,
    },
  },
]

/** The thread of the sandbox has no variables of the process. */
const to_thread: Edit = {
  file: 'executors/code-thread.ts',
  from: 'env: {},',
  to: `env: { ${worse_variable}: globalThis.process.env.${worse_variable} ?? "" },`,
}

/** The rows of all classes; the child says where there is another number of them. */
const all = 818

/** Of the latest claim: its outcome, and those of its controls. */
let trials: Promise<ReadonlyMap<string, Outcome>> | undefined

export const proof: Proof = {
  name: 'vectors',
  says: 'all that is hostile gets its stated answer, and the next good one is served',
  unit: 'rows',
  quick: 100,
  long: all,
  run(given) {
    trials = triedAll(given)
    return outcomeOf('claim')
  },
  controls: worse.map(({ name, says }): Experiment => {
    return { says, quick: 1, long: 1, run: () => outcomeOf(name) }
  }),
}

async function outcomeOf(name: string): Promise<Outcome> {
  return (await trials)?.get(name) ?? { tried: 0, faults: 0, failures: [] }
}

interface Line {
  readonly trial: string
  readonly at?: number
  readonly says?: string
  readonly counts?: Readonly<Record<string, number>>
}

async function triedAll({ n, seed }: Given): Promise<ReadonlyMap<string, Outcome>> {
  const asked: readonly Trial[] = [
    { name: 'claim', is_worse: false, first: seed % all, count: n },
    ...worse.map(({ name, only }) => ({ name, is_worse: true, only, first: 0 })),
  ]
  const child = await buildChild('hostile/vectors-child.ts', [
    ...worse.map(({ edit }) => edit),
    to_thread,
  ])
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [child.script, JSON.stringify(asked), String(all)],
      { maxBuffer: 2 ** 26 },
    )
    const lines = stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line)
    return new Map(asked.map((trial) => [trial.name, outcomeIn(lines, trial)]))
  } finally {
    await child.remove()
  }
}

function outcomeIn(lines: readonly Line[], { name }: Trial): Outcome {
  const own = lines.filter(({ trial }) => trial === name)
  const failures = own.flatMap(({ at, says }) =>
    at === undefined || says === undefined ? [] : [{ seed: at, says }],
  )
  const counts = own.find((line) => line.counts !== undefined)?.counts ?? {}
  const by_class = Object.entries(counts).map(([one, rows]) => `${one} ${rows}`)
  const tried = Object.values(counts).reduce((sum, rows) => sum + rows, 0)
  return { tried, faults: tried, failures, figures: { rows: by_class.join(', ') } }
}
