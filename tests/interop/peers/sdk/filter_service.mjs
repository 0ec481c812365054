// SPDX-License-Identifier: MIT
//
// A filter service on js-libp2p and js-waku's codecs, for the client of Sluice.
//
//   filter_service.mjs CONTENT_TOPIC MESSAGES
//
// Prints LISTEN and its address. A subscriber gets MESSAGES messages "m-0", "m-1", ...: the first half
// on one stream, then one stream each. Its next ping is answered with 404; when it has subscribed
// again it gets as many more, and has to unsubscribe. Prints OK then, or what went wrong.

import '../polyfill.mjs'
import { require } from '../require.mjs'

const { createLibp2p } = await import('libp2p')
const { tcp } = await import('@libp2p/tcp')
const { noise } = await import('@chainsafe/libp2p-noise')
const { yamux } = await import('@chainsafe/libp2p-yamux')
const { identify } = await import('@libp2p/identify')
const { ping } = await import('@libp2p/ping')
const lp = await import('it-length-prefixed')
const { proto_filter_v2: F } = await import('@waku/proto')

const [contentTopic, messages] = process.argv.slice(2)
const PUBSUB = '/waku/2/rs/16/3'
const SUBSCRIBE = '/vac/waku/filter-subscribe/2.0.0-beta1'
const PUSH = '/vac/waku/filter-push/2.0.0-beta1'

const node = await createLibp2p({
  addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
  transports: [tcp()],
  connectionEncrypters: [noise()],
  streamMuxers: [yamux()],
  services: { identify: identify(), ping: ping() }
})

function frame (number) {
  const wakuMessage = {
    payload: new TextEncoder().encode(`m-${number}`),
    contentTopic,
    version: 0,
    timestamp: BigInt(Date.now()) * 1000000n,
    meta: undefined,
    rateLimitProof: undefined,
    ephemeral: false
  }
  return lp.encode.single(F.MessagePush.encode({ wakuMessage, pubsubTopic: PUBSUB }))
}

async function push (connection, from, count) {
  const half = from + Math.floor(count / 2)
  const long = await connection.newStream(PUSH)
  await long.sink((async function * () {
    for (let i = from; i < half; i++) {
      yield frame(i)
    }
  })())
  for (let i = half; i < from + count; i++) {
    const stream = await connection.newStream(PUSH)
    await stream.sink([frame(i)])
  }
}

let isSubscribed = false
let subscriptions = 0

function answer (request, connection) {
  const codes = {
    SUBSCRIBER_PING: () => {
      const wasSubscribed = isSubscribed && subscriptions > 1
      isSubscribed = wasSubscribed
      return wasSubscribed ? 200 : 404
    },
    SUBSCRIBE: () => {
      require(request.pubsubTopic === PUBSUB, 'pubsub topic', request.pubsubTopic)
      require(request.contentTopics.join() === contentTopic, 'content topics', request.contentTopics)
      isSubscribed = true
      const from = subscriptions++ * Number(messages)
      setTimeout(() => push(connection, from, Number(messages)).catch(error => require(false, error)))
      return 200
    },
    UNSUBSCRIBE: () => {
      require(subscriptions === 2, 'subscriptions', subscriptions)
      setTimeout(() => { console.log('OK'); process.exit(0) }, 200)
      return 200
    },
    UNSUBSCRIBE_ALL: () => 200
  }
  return codes[request.filterSubscribeType]()
}

await node.handle(SUBSCRIBE, async ({ stream, connection }) => {
  const { value } = await lp.decode(stream.source).next()
  const request = F.FilterSubscribeRequest.decode(value)
  const statusCode = answer(request, connection)
  await stream.sink([lp.encode.single(F.FilterSubscribeResponse.encode(
    { requestId: request.requestId, statusCode, statusDesc: 'from js' }))])
})
setTimeout(() => require(false, 'time is over'), 60000)
console.log('LISTEN', node.getMultiaddrs()[0].toString())
