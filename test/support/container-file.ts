/**
 * Reads a Containerfile, as far as this project's uses the language: comments, continued lines,
 * `${NAME}` of an ARG, and the instructions below. Any other throws, so what a test runs is the whole
 * of the file.
 */

export interface Step {
  readonly kind: 'RUN' | 'COPY' | 'WORKDIR' | 'ENV' | 'USER'
  readonly text: string
}

export interface Stage {
  readonly base: string
  readonly name: string | undefined
  readonly steps: readonly Step[]
  /** What is told of the image and changes nothing in it, by instruction. */
  readonly facts: ReadonlyMap<string, string>
}

const step_kinds: readonly string[] = ['RUN', 'COPY', 'WORKDIR', 'ENV', 'USER']
const fact_kinds: readonly string[] = [
  ...['VOLUME', 'EXPOSE', 'STOPSIGNAL', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'],
]

interface OpenStage extends Stage {
  readonly steps: Step[]
  readonly facts: Map<string, string>
}

export function parseContainerFile(file: string): readonly Stage[] {
  const lines = file.split('\n').filter((line) => !line.trimStart().startsWith('#'))
  const instructions = lines
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
  const args = new Map<string, string>()
  const stages: OpenStage[] = []
  for (const line of instructions.filter((one) => one.trim() !== '')) {
    const [, kind = '', raw = ''] = /^([A-Z]+)\s+(.+)$/.exec(line) ?? []
    if (kind === 'ARG') {
      const [name = '', value = ''] = raw.split('=')
      args.set(name, value)
    } else if (kind === 'FROM') {
      const text = raw.replaceAll(/\$\{(\w+)\}/g, (_all, name) => args.get(name) ?? '')
      const [, base = '', name] = /^(\S+)(?: AS (\S+))?$/.exec(text) ?? []
      stages.push({ base, name, steps: [], facts: new Map() })
    } else if (step_kinds.includes(kind)) {
      stages.at(-1)?.steps.push({ kind: kind as Step['kind'], text: raw })
    } else if (fact_kinds.includes(kind)) {
      stages.at(-1)?.facts.set(kind, raw)
    } else throw new Error(`no such instruction here: ${line}`)
  }
  return stages
}

/** The words of an instruction in its exec form. */
export function wordsOf(stage: Stage, kind: 'ENTRYPOINT' | 'CMD' | 'HEALTHCHECK'): string[] {
  const text = stage.facts.get(kind) ?? '[]'
  return JSON.parse(text.slice(text.indexOf('['))) as string[]
}

export function envOf({ steps }: Stage): Record<string, string> {
  const pairs = steps.flatMap(({ kind, text }) => (kind === 'ENV' ? text.split(' ') : []))
  return Object.fromEntries(pairs.map((pair) => pair.split('=') as [string, string]))
}

/** What a COPY takes, where it comes from if not from the checkout, and where it puts it. */
export function copyOf(step: Step): { stage: string | undefined; from: string[]; to: string } {
  const words = step.text.split(' ')
  const stage = words[0]?.startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined
  const to = words.pop() as string
  return { stage, from: words, to }
}
