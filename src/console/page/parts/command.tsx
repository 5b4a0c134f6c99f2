/** One line for a shell, with a button that copies it. */
import { CopyButton } from './copy-button.tsx'

export function Command({ line }: { readonly line: string }) {
  return (
    <p class="command-line">
      <code>{line}</code> <CopyButton text={line} what="the command" />
    </p>
  )
}
