/** Why something was refused: the sentence, and the code by which one finds it in the manual. */
import { isCallFault } from '../session.ts'

export function FaultText({ fault }: { readonly fault: unknown }) {
  if (fault === undefined) return null
  const { code, text } = told(fault)
  return (
    <p class="fault" role="alert">
      {text} {code !== '' && <code>{code}</code>}
    </p>
  )
}

function told(fault: unknown): { readonly code: string; readonly text: string } {
  const text = fault instanceof Error ? fault.message : String(fault)
  const end = /[.!?]$/.test(text) ? '' : '.'
  return {
    code: isCallFault(fault) ? fault.code : '',
    text: `${text.charAt(0).toUpperCase()}${text.slice(1)}${end}`,
  }
}
