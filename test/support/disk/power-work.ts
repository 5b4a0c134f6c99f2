/**
 * Has the images of a trace judged by several processes, each image in one of them: LMDB kills a
 * process that opens some broken files, which then counts as a failure, and another goes on.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { tryInChildren } from '../child-tries.ts'
import { quickFolder } from '../store-folder.ts'
import { type Cut, newDisk } from './power-disk.ts'
import type { ServerTrace } from './power-server.ts'

/** The n-th image of a cut. */
export interface Place {
  readonly at: number
  readonly n: number
}

/** What a process that judges is told. */
export interface PowerWork {
  readonly trace: ServerTrace
  readonly seed: number
  /** By cut, how many images of it are judged. */
  readonly counts: readonly number[]
  /** Cuts beside each other have the same states, so a share is those from one to another. */
  readonly share: number
  readonly shares: number
  readonly from: Place
  /** A folder of its own. */
  readonly folder: string
  readonly failures_max: number
}

export interface JudgedTrace {
  readonly images: number
  /** Images that lack something or have it in part. */
  readonly at_risk: number
  /** Digests of the images. */
  readonly distinct: ReadonlySet<string>
  readonly states: number
  readonly failures: readonly JudgedFailure[]
}

export interface JudgedFailure {
  readonly says: string
  /** Repeats this one. */
  readonly work: PowerWork
}

export interface JudgeOptions {
  /** The script of power-judge-child. */
  readonly script: string
  readonly seed: number
  readonly images: number
  readonly failures_max: number
  /** Only cuts from this line on. */
  readonly since?: number
}

/** Two processes take longer to start than to judge few images. */
const [shares_max, images_of_share] = [2, 500]

export async function judgeTrace(trace: ServerTrace, options: JudgeOptions): Promise<JudgedTrace> {
  const { script, seed, images, failures_max, since = 0 } = options
  const { cuts } = newDisk(trace.events)
  const first = Math.max(
    0,
    cuts.findIndex(({ line }) => line >= since),
  )
  const counts = [...new Array<number>(first).fill(0), ...imagesOfCuts(cuts.slice(first), images)]
  const shares = Math.min(shares_max, Math.ceil(images / images_of_share))
  const judged = await Promise.all(
    Array.from({ length: shares }, (_, share) =>
      judgeShare(script, {
        ...{ trace, seed, counts, share, shares, from: { at: 0, n: 0 }, folder: '' },
        failures_max: Math.ceil(failures_max / shares),
      }),
    ),
  )
  const sum = (of: (one: JudgedTrace) => number): number =>
    judged.reduce((all, one) => all + of(one), 0)
  return {
    images: sum((one) => one.images),
    at_risk: sum((one) => one.at_risk),
    distinct: new Set(judged.flatMap((one) => [...one.distinct])),
    states: sum((one) => one.states),
    failures: judged.flatMap((one) => one.failures),
  }
}

/** The more is loose at a cut, the more there is to try; without anything loose there is one image. */
function imagesOfCuts(cuts: readonly Cut[], images: number): number[] {
  const weights = cuts.map(({ loose }) => (loose.length === 0 ? 0 : 2 + Math.min(loose.length, 30)))
  const all = weights.reduce((sum, weight) => sum + weight, 0)
  const plain = weights.filter((weight) => weight === 0).length
  // Of few images most are of cuts at which something is at risk.
  const one_in = Math.max(1, Math.ceil((4 * plain) / images))
  const left = images - Math.ceil(plain / one_in)
  let [sum, seen] = [0, 0]
  return weights.map((weight) => {
    if (weight === 0) return seen++ % one_in === 0 ? 1 : 0
    const before = Math.floor((sum * left) / all)
    sum += weight
    return Math.floor((sum * left) / all) - before
  })
}

/** Judges the images of one share from a place on. */
async function judgeShare(script: string, work: PowerWork): Promise<JudgedTrace> {
  const folder = await quickFolder('conveyor-power-')
  const path = join(folder, 'work')
  const failures: JudgedFailure[] = []
  let [images, at_risk] = [0, 0]
  const fail = ({ at, n }: Place, says: string): void => {
    failures.push({ says, work: { ...work, from: { at, n }, failures_max: 1 } })
  }
  try {
    await tryInChildren<JudgeLine>({
      words(after) {
        const from = after === undefined ? work.from : { at: after.at, n: after.n + 1 }
        const failures_max = work.failures_max - failures.length
        if (failures_max <= 0) return undefined
        writeFileSync(path, serialize({ ...work, from, folder, failures_max } satisfies PowerWork))
        return [script, path]
      },
      begins: (line) => 'whole' in line,
      take(line) {
        if ('says' in line) return fail(line, line.says)
        images++
        if (!line.whole) at_risk++
      },
      fail: (begun, how) => fail(begun, `it ends the process that opens it: ${how}`),
    })
    const done = join(folder, 'done')
    // Missing where each child was ended by its last image.
    const { images: distinct, states } = existsSync(done)
      ? (deserialize(readFileSync(done)) as Done)
      : { images: [], states: 0 }
    return { images, at_risk, distinct: new Set(distinct), states, failures }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Of power-judge-child: an image that it begins with, or what is wrong with one. */
export type JudgeLine = Place & ({ readonly whole: boolean } | { readonly says: string })

interface Done {
  readonly images: readonly string[]
  readonly states: number
}

/** Judges again what has failed. */
export async function judgeAgain(script: string, work: PowerWork): Promise<JudgedTrace> {
  const counts = work.counts.map((count, at) =>
    at === work.from.at ? Math.min(count, work.from.n + 1) : 0,
  )
  return judgeShare(script, { ...work, counts })
}
