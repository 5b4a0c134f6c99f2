/**
 * The samples of a text in the format of Prometheus: name and labels as they stand, and the value.
 */
export function sampled(text: string): Map<string, number> {
  const samples = new Map<string, number>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, name = '', value] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? []
    if (name === '' || samples.has(name))
      throw new Error(`a sample that is none, or twice: ${line}`)
    samples.set(name, Number(value))
  }
  return samples
}
