/**
 * Watches files for changed content by polling, which works on every file system. New content is
 * used once two reads agree, so half-written files are not reported.
 */
import type { Clock } from './clock.ts'

export interface Polled<Content> {
  readonly clock: Clock
  readonly every_ms: number
  /** The content in use now. */
  readonly first: Content
  read(): Promise<Content>
  isSame(one: Content, other: Content): boolean
  /** Takes new content. If it throws, the old content stays in use. */
  use(content: Content): void
  /** Called once for each new content that cannot be read or used. */
  onBroken(cause: Error): void
}

/** Polls every `every_ms` until the returned function is called. */
export function poll<Content>(options: Polled<Content>): () => void {
  const { clock, every_ms } = options
  type Found = { readonly content: Content } | { readonly cause: Error }
  const isSame = (one: Found, other: Found): boolean => {
    if ('cause' in one) return 'cause' in other && one.cause.message === other.cause.message
    return 'content' in other && options.isSame(one.content, other.content)
  }
  let used = { content: options.first } as Found
  let seen = used
  let reported = used
  let stopped = false
  let cancel = (): void => {}

  const look = async (): Promise<void> => {
    const found: Found = await options.read().then(
      (content) => ({ content }),
      (cause: Error) => ({ cause }),
    )
    const settled = isSame(found, seen)
    seen = found
    if (stopped || !settled || isSame(found, used) || isSame(found, reported)) return
    reported = found
    try {
      if ('cause' in found) throw found.cause
      options.use(found.content)
      used = found
    } catch (cause) {
      options.onBroken(cause as Error)
    }
  }
  const arm = (): void => {
    if (stopped) return
    cancel = clock.wake_at(clock.now_ms() + every_ms, () => void look().finally(arm))
  }
  arm()
  return () => {
    stopped = true
    cancel()
  }
}
