/** Why something was refused: the sentence, and the code by which one finds it in the manual. */
import { isCallFault } from '../session.ts'
import { sentenceText } from './texts.ts'

export function FaultText({ fault }: { readonly fault: unknown }) {
  if (fault === undefined) return null
  const text = fault instanceof Error ? fault.message : String(fault)
  return (
    <p class="fault" role="alert">
      {sentenceText(text)} {isCallFault(fault) && <code>{fault.code}</code>}
    </p>
  )
}
