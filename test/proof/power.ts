/**
 * The power is cut at every moment of the life of a server, which is killed, also in the sync of a
 * checkpoint, started, stopped and started again under load, with rotations of its commit log and
 * checkpoints. Whatever the disk may hold then opens, with everything that was answered and no
 * request in part. support/disk/power-disk states what the disk may hold, support/power-judge what is
 * asked of it.
 *
 * The traces of a failure are kept (kept.ts): a server under load does not do the same twice.
 */
import { crash_forms } from '../support/commit-log-crash.ts'
import {
  type LifeEnd,
  type ServerTrace,
  type TraceOptions,
  traceServer,
} from '../support/disk/power-server.ts'
import { type DiskEvent, unknown_write } from '../support/disk/power-trace.ts'
import {
  type JudgedTrace,
  judgeAgain,
  judgeTrace,
  type PowerWork,
} from '../support/disk/power-work.ts'
import { builtOnce, type Edit } from '../support/store-child.ts'
import { canTrace } from '../support/store-strace.ts'
import { keep, kept } from './kept.ts'
import type { Experiment, Failure, Given, Outcome, Proof } from './proof.ts'

interface Form {
  readonly edits: readonly Edit[]
  readonly checkpoint_bytes: number
  /** Answers after which a life of the server ends. */
  readonly answers: number
}

/** Segments grow in small steps, and what is put behind a run of new keys is put behind short ones. */
const small: readonly Edit[] = [
  {
    file: 'store/commit-log/segments.ts',
    from: 'ahead_bytes = 1024 * 1024',
    to: 'ahead_bytes = 16 * 1024',
  },
  { file: 'store/lmdb/full-pages.ts', from: 'run_min = 128', to: 'run_min = 8' },
]
/** Each fence is in the trace, as a line that the server says. */
const emits_fences: Edit = {
  file: 'store/commit-log/checkpoint.ts',
  from: 'putFences(writer, last_keys)',
  to: `for (const _ of last_keys) console.error('fence')
    putFences(writer, last_keys)`,
}
const forms: readonly Form[] = [
  { edits: [...small, emits_fences], checkpoint_bytes: 12 * 1024, answers: 100 },
  {
    edits: [...(crash_forms.at(-1)?.edits ?? []), emits_fences],
    checkpoint_bytes: 0,
    answers: 100,
  },
  { edits: [emits_fences], checkpoint_bytes: 64 * 1024, answers: 200 },
]

/** The judge opens a file for each image: with buffers as large as usual that would take its time. */
const judge_edits: readonly Edit[] = [
  {
    file: 'store/commit-log/bounds.ts',
    from: '[usual_min, usual_max] = [8 * mib, 32 * mib]',
    to: '[usual_min, usual_max] = [2 * mib, 2 * mib]',
  },
  {
    file: 'store/commit-log/writer.ts',
    from: 'first_slots = 512 * 1024',
    to: 'first_slots = 4096',
  },
]
/** The script that judges. */
const judgeScript = async (): Promise<string> => {
  const { script } = await builtOnce('disk/power-judge-child.ts', judge_edits)
  return script
}

const short_life: readonly LifeEnd[] = ['SIGKILL']
const long_life: readonly LifeEnd[] = [
  ...(['SIGKILL', 'SIGKILL in a checkpoint', 'SIGTERM'] as const),
  ...(['SIGKILL in a checkpoint', 'SIGKILL', 'SIGTERM'] as const),
]
const lifeOf = (form: Form, ends = short_life): TraceOptions => ({
  ...form,
  lives: ends.map((end) => [end, ends === short_life ? short_answers : form.answers]),
})
const short_answers = 40
/** Of the claim, by its lives, for the controls that try the same load. */
const last_traces = new Map<readonly LifeEnd[], ServerTrace>()

const failures_max = 20
/** The two first pages of LMDB, of which each commit writes one last. */
const meta_bytes = 2 * 4096
/** So many images of one trace, in the long form. */
const images_of_trace = 20_000

async function run({ n, seed, emit }: Given): Promise<Outcome> {
  const script = await judgeScript()
  const again = kept<PowerWork>('power', { n, seed })
  if (again !== undefined) return outcomeOf(await judgeAgain(script, again), seed)
  const distinct = new Set<string>()
  const failures: Failure[] = []
  const figures = { traces: 0, states: 0, distinct: 0, commits: 0, rotations: 0, fences: 0 }
  let [tried, faults] = [0, 0]
  while (tried < n && failures.length < failures_max) {
    const own_seed = seed + figures.traces * failures_max
    const form = forms[figures.traces++ % forms.length] as Form
    const images = Math.min(n - tried, images_of_trace)
    const ends = n > images_of_trace ? long_life : short_life
    const trace = await traceWhole(lifeOf(form, ends))
    last_traces.set(ends, trace)
    const judged = await judgeTrace(trace, { script, seed: own_seed, images, failures_max })
    for (const { says, work } of judged.failures) {
      const failure_seed = own_seed + failures.length
      keep('power', failure_seed, work)
      failures.push({ seed: failure_seed, says })
    }
    for (const digest of judged.distinct) distinct.add(digest)
    tried += judged.images
    faults += judged.at_risk
    figures.states += judged.states
    figures.distinct = distinct.size
    const { commits, rotations, fences } = seenIn(trace)
    figures.commits += commits
    figures.rotations += rotations
    figures.fences += fences
    if (tried < n) emit(`${tried} of ${n}, ${failures.length} failures`)
  }
  return { tried, faults, failures, figures }
}

/** A trace of which every write is known. */
async function traceWhole(options: TraceOptions): Promise<ServerTrace> {
  for (;;) {
    try {
      return await traceServer(options)
    } catch (error) {
      if ((error as { code?: unknown }).code !== unknown_write) throw error
    }
  }
}

function outcomeOf({ images, at_risk, failures }: JudgedTrace, seed: number): Outcome {
  return {
    ...{ tried: images, faults: at_risk },
    failures: failures.map(({ says }) => ({ seed, says })),
  }
}

/** The last name of each file. */
function namesIn(events: ServerTrace['events']): Map<number, string> {
  const names = new Map<number, string>()
  for (const event of events) {
    if (event.what === 'name' && event.file !== undefined) names.set(event.file, event.name)
  }
  return names
}

/** What the trace has of all that the images are to come from. */
function seenIn({ events }: ServerTrace) {
  const names = namesIn(events)
  let [commits, rotations, fences] = [0, 0, 0]
  let active: number | undefined
  for (const event of events) {
    if (event.what === 'said') fences += event.text.split('fence\n').length - 1
    if (event.what !== 'write') continue
    const name = names.get(event.file) ?? ''
    if (name === 'db' && event.at < meta_bytes) commits++
    if (!name.startsWith('db-log-') || event.bytes.every((byte) => byte === 0)) continue
    if (active !== undefined && active !== event.file) rotations++
    active = event.file
  }
  return { commits, rotations, fences }
}

/** Runs on the images of the trace of the claim, with some of its syncs taken out. */
function unsynced(says: string, without: RegExp, share: number, quick = 0): Experiment {
  const isWithout = (name = ''): boolean => without.test(name)
  return {
    ...{ says, quick, long: 1_000 },
    async run({ n, seed }) {
      const script = await judgeScript()
      // Of a short life so many images would be the same few cuts, torn again and again.
      const ends = n > quick ? long_life : short_life
      const trace = last_traces.get(ends) ?? (await traceServer(lifeOf(forms[0] as Form, ends)))
      last_traces.set(ends, trace)
      const names = namesIn(trace.events)
      const events = trace.events.flatMap((event): readonly DiskEvent[] => {
        if (event.what === 'sync of the folder') return isWithout('folder') ? [] : [event]
        if (event.what === 'sync') return isWithout(names.get(event.file)) ? [] : [event]
        if (event.what !== 'write' || !isWithout(names.get(event.file))) return [event]
        return [{ ...event, is_synced: false }]
      })
      return judgeControl({ ...trace, events }, { script, seed, images: n }, share)
    },
  }
}

/** Runs on the images of a worse program, which has these lives. */
function worse(
  says: string,
  edits: readonly Edit[],
  ends: readonly LifeEnd[],
  { form = forms[0] as Form, share = 0 } = {},
): Experiment {
  return {
    ...{ says, quick: 0, long: 1_000 },
    async run({ n, seed }) {
      const script = await judgeScript()
      const all = [...form.edits, ...edits]
      const trace = await traceServer(lifeOf({ ...form, edits: all }, ends))
      return judgeControl(trace, { script, seed, images: n }, share)
    },
  }
}

/**
 * Of cuts at which there is something to lose. No failures where no larger share of the images that
 * lack something fails.
 */
async function judgeControl(
  trace: ServerTrace,
  options: { readonly script: string; readonly seed: number; readonly images: number },
  share: number,
): Promise<Outcome> {
  const most = share === 0 ? failures_max : options.images
  const judged = await judgeTrace(trace, {
    ...options,
    failures_max: most,
    since: trace.ready_at,
  })
  const outcome = outcomeOf(judged, options.seed)
  return judged.failures.length > share * judged.at_risk ? outcome : { ...outcome, failures: [] }
}

export const proof: Proof = {
  name: 'power',
  unit: 'images',
  says: 'no image of a disk that loses unsynced writes under a server has lost what was answered, has a request in part, or cannot be used',
  quick: 100,
  long: 130_000,
  missing: () => (canTrace() ? undefined : 'strace is missing or may not trace here'),
  run,
  controls: [
    unsynced(
      "the commit log's syncs taken out, where more than half of what lacks something must fail",
      /-log-/,
      1 / 2,
      40,
    ),
    unsynced("LMDB's syncs taken out, in checkpoints too", /^db$/, 0),
    unsynced('the syncs of the folder taken out', /^folder$/, 0),
    worse(
      'a program without the sync of the commit log, where more than half of what lacks something must fail',
      [
        {
          file: 'store/commit-log/segment-file.ts',
          from: 'constants.O_DSYNC :',
          to: 'constants.O_NOATIME :',
        },
      ],
      ['SIGKILL'],
      { share: 1 / 2 },
    ),
    worse(
      'a program that removes the commit log before the data file says so',
      [
        {
          file: 'store/commit-log/open.ts',
          from: 'async finish({ frames, first_seq, last_seq: seq }) {',
          to: `async finish({ frames, first_seq, last_seq: seq }) {
      await removeSegments(path)`,
        },
      ],
      ['SIGTERM'],
    ),
    worse(
      'a program whose manifest is ahead of its checkpoint',
      [
        {
          file: 'store/commit-log/checkpoint.ts',
          from: 'commitSlice(tree, own, slice)\n',
          to: 'commitSlice(tree, own, slice, job.manifest)\n',
        },
      ],
      ['SIGKILL'],
      // Its checkpoints have more than one slice.
      { form: forms[1] as Form },
    ),
    worse(
      'a program that neither syncs what it opens nor gives it the sums of its last pages',
      [
        {
          file: 'store/lmdb/open.ts',
          from: 'await syncPath(path)\n      await syncFolder(path)',
          to: '',
        },
        // That is a commit, which would sync the file.
        {
          file: 'store/commit-log/open.ts',
          from: 'tree.has_last_sums || tree.verified() !== undefined',
          to: 'true',
        },
      ],
      ['SIGKILL in a checkpoint', 'SIGKILL'],
      // Its next start has no full segment, whose checkpoint would sync the file before a request.
      { form: forms[2] as Form },
    ),
  ],
}
