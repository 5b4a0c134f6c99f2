/**
 * Text in drawings: how long it may be and how much room it takes. It needs no Node, so the page
 * cuts text as the SVG file does.
 */

/** `1 task`, `12 tasks`. */
export const tasksText = (tasks: number): string => `${tasks} ${tasks === 1 ? 'task' : 'tasks'}`

/** How much of a label is shown on its edge; all of it belongs into the title of the edge. */
export const label_chars_max = 34

/** The first `chars_max` code points of a text; a cut one ends with an ellipsis. */
export function cut(text: string, chars_max: number): string {
  const chars = [...text.slice(0, 2 * chars_max + 2)]
  return chars.length > chars_max ? `${chars.slice(0, chars_max - 1).join('')}…` : text
}

const char_px = 6.2
const around_px = 8
export const label_height_px = 16

/** The width of a label as it is shown, estimated, as no font is at hand. */
export function labelWidth(label: string): number {
  return around_px + char_px * Math.min(label.length, label_chars_max)
}
