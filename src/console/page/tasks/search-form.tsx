/**
 * The search form. Typed text is searched for on submit, choices at once. Its address has neither
 * the ref nor conditions on data, and the form says so beside the link.
 */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { nodeOptions, processes, useNodes } from '../known-processes.ts'
import { Button, CopyButton, SubmitButton } from '../parts/button.tsx'
import { Field } from '../parts/field.tsx'
import { nameText } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { status_words } from '../parts/texts.ts'
import { addressOf } from '../place.ts'
import {
  type Comparison,
  type Condition,
  comparisons,
  empty_search,
  type Search,
  type SearchMistake,
  valueKind,
} from './search.ts'

interface SearchFormProps {
  readonly search: Search
  readonly mistakes: readonly SearchMistake[]
  readonly is_running: boolean
  readonly onSearch: (search: Search) => void
}

const status_options: readonly (readonly [string, string])[] = [
  ['live', 'live: waiting, running or failed'],
  ['ended', 'ended: done or canceled'],
  ...Object.entries(status_words),
  ['any', 'any'],
]

const times: readonly (readonly [keyof Search, string])[] = [
  ['created_since', 'Created from'],
  ['created_until', 'Created before'],
  ['changed_since', 'Changed from'],
  ['changed_until', 'Changed before'],
  ['ended_since', 'Ended from'],
  ['ended_until', 'Ended before'],
  ['due_before', 'Timer due before'],
]

const comparison_texts: Readonly<Record<Comparison, string>> = {
  eq: '=',
  ne: '≠',
  gt: '>',
  gte: '≥',
  lt: '<',
  lte: '≤',
  exists: 'is there',
  missing: 'is not there',
}

export function SearchForm({ search, mistakes, is_running, onSearch }: SearchFormProps) {
  const draft = useSignal(search)
  useEffect(() => set(draft, search), [search])
  const timed = times.filter(([name]) => search[name] !== '').length
  const is_wide = useSignal(timed > 0)
  // Without an answer the node is shown by its id.
  const nodes = useNodes(draft.value.conv_id, () => {})
  const change = (part: Partial<Search>) => set(draft, { ...draft.value, ...part })
  const choose = (part: Partial<Search>) => {
    change(part)
    onSearch(draft.value)
  }
  const add = () => {
    change({ where: [...draft.value.where, { path: '', comparison: 'eq', value: '' }] })
  }
  const { conv_id, node_id, status, name, newest_first, where } = draft.value
  const link = location.origin + addressOf({ name: 'tasks' }, search)
  return (
    <form
      class="search panel"
      aria-label="Search tasks"
      onSubmit={(event) => {
        event.preventDefault()
        onSearch(draft.value)
      }}
    >
      <div class="search-row">
        <Field label="Ref or id" type="search" value={name} onChange={(name) => change({ name })} />
        <Field
          label="Process"
          value={conv_id}
          options={[['', 'all processes'], ...processOptions(conv_id)]}
          onChange={(conv_id) => choose({ conv_id, node_id: '' })}
        />
        <Field
          label="Node"
          value={node_id}
          options={[
            ['', conv_id === '' ? 'choose a process first' : 'all nodes'],
            ...withOwn(nodeOptions(nodes), node_id),
          ]}
          onChange={(node_id) => choose({ node_id })}
        />
        <Field
          label="Status"
          value={status}
          options={status_options}
          onChange={(status) => choose({ status })}
        />
        <Field
          label="Order"
          value={newest_first ? 'newest' : 'oldest'}
          options={[
            ['newest', 'newest first'],
            ['oldest', 'oldest first'],
          ]}
          onChange={(order) => choose({ newest_first: order === 'newest' })}
        />
      </div>
      {is_wide.value && (
        <div class="search-row times">
          {times.map(([member, label]) => (
            <Field
              key={member}
              label={label}
              type="datetime-local"
              value={String(draft.value[member])}
              // Only ended tasks have a time of their end.
              onChange={(text) =>
                change({
                  [member]: text,
                  ...(member.startsWith('ended') && text !== '' && status === 'live'
                    ? { status: 'ended' }
                    : {}),
                })
              }
            />
          ))}
        </div>
      )}
      {where.map((condition, at) => (
        <ConditionRow
          key={at}
          number={at + 1}
          condition={condition}
          mistake={mistakes.find((one) => one.condition === at)?.mistake}
          set={(put) =>
            change({
              where: where.flatMap((one, n) => (n !== at ? [one] : put === undefined ? [] : [put])),
            })
          }
        />
      ))}
      <div class="search-buttons">
        <SubmitButton is_running={is_running}>Search</SubmitButton>
        <Button kind="quiet" act={add}>
          + Condition on data
        </Button>
        <Button kind="quiet" is_expanded={is_wide.value} act={() => set(is_wide, !is_wide.value)}>
          {timed === 0 || is_wide.value ? 'Times' : `Times (${timed})`}
        </Button>
        <Button kind="quiet" act={() => choose(empty_search)}>
          Clear
        </Button>
        <CopyButton text={link} what="to this search">
          Copy link
        </CopyButton>
        {(search.name !== '' || search.where.length > 0) && (
          <span class="quiet-text">The link leaves out the ref and the conditions on data.</span>
        )}
      </div>
    </form>
  )
}

interface ConditionRowProps {
  readonly number: number
  readonly condition: Condition
  readonly mistake: string | undefined
  readonly set: (condition: Condition | undefined) => void
}

function ConditionRow({ number, condition, mistake, set }: ConditionRowProps) {
  const { comparison, path, value } = condition
  const has_value = comparison !== 'exists' && comparison !== 'missing'
  return (
    <fieldset class="condition">
      <legend class="unseen">Condition {number} on data</legend>
      <Field
        label="Path"
        placeholder="order.amount"
        value={path}
        onChange={(path) => set({ ...condition, path })}
        problem={mistake}
      />
      <Field
        label="Comparison"
        value={comparison}
        options={comparisons.map((one) => [one, comparison_texts[one]] as const)}
        onChange={(comparison) => set({ ...condition, comparison: comparison as Comparison })}
      />
      {has_value && (
        <Field
          label="Value"
          placeholder='100, true or "007"'
          value={value}
          onChange={(value) => set({ ...condition, value })}
          hint={value === '' ? undefined : `compared as ${valueKind(value)}`}
        />
      )}
      <Button kind="quiet" label={`Remove condition ${number}`} act={() => set(undefined)}>
        ×
      </Button>
    </fieldset>
  )
}

function processOptions(conv_id: string): (readonly [string, string])[] {
  const known = [...processes.value.values()].map(
    (one) =>
      [
        one.conv_id,
        one.title === '' ? one.conv_id : `${nameText(one.title)} (${one.conv_id})`,
      ] as const,
  )
  return withOwn(known, conv_id)
}

/** What is searched for stays to be seen, also where it is not known. */
function withOwn(
  options: (readonly [string, string])[],
  own: string,
): (readonly [string, string])[] {
  if (own === '' || options.some(([value]) => value === own)) return options
  return [...options, [own, own]]
}
