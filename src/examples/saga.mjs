/**
 * A saga with compensation: book a flight, then a hotel; where the hotel has no room, the flight is
 * cancelled. Each step has one key for each visit, so a repeated attempt books nothing twice.
 */
import { openEngine } from 'conveyor-engine'
import { callback, defineProcess, end, go, when } from 'conveyor-engine/define'

const trip = defineProcess({
  id: 'trip',
  nodes: {
    start: go('flight'),
    flight: [callback({ error: 'not booked' }), go('hotel')],
    // A hotel without a room is an answer; a hotel out of reach fails after its attempts.
    hotel: [
      callback({ error: 'cancel flight' }),
      when('full', 'eq', true).go('cancel flight'),
      go('booked'),
    ],
    'cancel flight': [callback({ error: 'call a person' }), go('not booked')],
    booked: end({ save: true }),
    'not booked': end({ save: true }),
    'call a person': end({ save: true }),
  },
})

const flights = new Set()
const handlers = {
  'trip/flight': async (_, { key }) => {
    flights.add(key)
    return { flight: key }
  },
  'trip/hotel': async ({ data }) => (data.city === 'Kyiv' ? { room: 12 } : { full: true }),
  // Asked until it answers: what is booked must not stay booked.
  'trip/cancel flight': {
    attempts_max: Number.POSITIVE_INFINITY,
    handler: async ({ data }) => {
      flights.delete(data.flight)
      return { cancelled: true }
    },
  },
}

const engine = await openEngine(':memory:', { handlers })
await engine.processes.put(trip)
for (const city of ['Kyiv', 'Lviv']) {
  await engine.create({ conv_id: 'trip', ref: city, data: { city } })
  const { node_id, data } = await engine.result({ conv_id: 'trip', ref: city })
  console.log(city, node_id, data.cancelled === true, flights.size)
}
await engine.close()
