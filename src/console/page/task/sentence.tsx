/** Small parts that the views of tasks share. */
import { TaskLink } from '../parts/link.tsx'
import { Countdown } from '../parts/time.tsx'
import type { Sentence } from './words.ts'

/** A sentence with its times counting down and its tasks as links. */
export function Words({ of: parts }: { readonly of: Sentence }) {
  return (
    <span class="words">
      {parts.map((part, at) => {
        if (typeof part === 'string') return <bdi key={at}>{part}</bdi>
        if ('at_ms' in part) return <Countdown key={at} ms={part.at_ms} />
        return <TaskLink key={at} obj_id={part.obj_id} />
      })}
    </span>
  )
}
