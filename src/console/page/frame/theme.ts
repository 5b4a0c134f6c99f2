/** Light, dark, or as the reader's system says; kept in this browser. */
import { effect, signal } from '@preact/signals'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const kept_as = 'conveyor-theme'

export const theme = signal<Theme>(kept())

function kept(): Theme {
  try {
    const text = localStorage.getItem(kept_as)
    return themes.find((one) => one === text) ?? 'system'
  } catch {
    // A browser may refuse pages to keep anything.
    return 'system'
  }
}

effect(() => {
  const { value } = theme
  if (value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = value
  try {
    localStorage.setItem(kept_as, value)
  } catch {
    // It holds until the page is closed.
  }
})
