// SPDX-License-Identifier: MIT
//
// A stock js-waku light node as a subscriber of one node.
//
//   filter_client.mjs ADDRESS MUXER CONTENT_TOPIC MESSAGES OTHER_PUBSUB_TOPIC
//
// MUXER: default (what the SDK brings: mplex) or yamux. Prints READY when it is subscribed, and waits
// for MESSAGES messages "m", "m-1", "m-2", ... in that order; then RESTART, upon which the node is to
// be stopped and started again at the same address; READY again when it is subscribed again, for as
// many messages more. OTHER_PUBSUB_TOPIC is one of another network. Prints what went wrong
// and ends with 1, or prints OK.

import { connectTo, createStockNode } from './light_node.mjs'
import { require } from '../require.mjs'

const { Protocols } = await import('@waku/sdk')
const { multiaddr } = await import('@multiformats/multiaddr')

const [address, muxer, contentTopic, messages, otherTopic] = process.argv.slice(2)
const PATIENCE_MS = 60000
const PUSH = '/vac/waku/filter-push/2.0.0-beta1'

async function until (condition, what) {
  const end = Date.now() + PATIENCE_MS
  while (!(await condition())) {
    require(Date.now() < end, what)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

const waku = await createStockNode(muxer)
let connections = 0
let mostStreams = 0
waku.libp2p.addEventListener('connection:open', event => {
  connections++
  console.log('CONNECTED', event.detail.remoteAddr.toString(), event.detail.multiplexer)
})

function pushStreams () {
  return waku.libp2p.getConnections().flatMap(connection => connection.streams)
    .filter(stream => stream.protocol === PUSH).length
}

let received = []
let isCounting = false
const decoder = waku.createDecoder({ contentTopic })

function onMessage (message) {
  const text = new TextDecoder().decode(message.payload)
  if (text === 'probe' || !isCounting) {
    return
  }
  received.push(text)
  mostStreams = Math.max(mostStreams, pushStreams())
}

async function receiveAll () {
  received = []
  isCounting = true
  console.log('READY')
  await until(() => received.length >= Number(messages), 'of the messages there came too few')
  await new Promise(resolve => setTimeout(resolve, 200))
  require(received.length === Number(messages), 'messages:', received.length)
  received.forEach((text, i) =>
    require(text === (i === 0 ? 'm' : `m-${i}`), 'message', i, 'is', text))
  require(mostStreams === 1, 'push streams at a time:', mostStreams)
  isCounting = false
}

async function connect () {
  await connectTo(waku, multiaddr(address), [Protocols.Filter])
}

await connect()
// The SDK asks only peers whose shards it has heard of, and does not try again by itself.
await until(async () => (await waku.filter.peerManager.getPeers(
  { protocol: Protocols.Filter, pubsubTopic: decoder.pubsubTopic })).length > 0, 'no metadata')
require(await waku.filter.subscribe(decoder, onMessage), 'subscribing')
const core = waku.filter.protocol
let peer = waku.libp2p.getPeers()[0]
require((await core.ping(peer)).success, 'ping')
await receiveAll()
require(connections === 1, 'connections:', connections)

const refused = await core.subscribe(otherTopic, peer, [contentTopic])
require(refused.success === null && refused.failure.error === 'Remote peer rejected',
  'a topic of another network:', refused)
const many = Array.from({ length: 101 }, (_, i) => `/many/1/${i}/proto`)
require((await core.subscribe(decoder.pubsubTopic, peer, many)).success === null, '101 topics')
require((await core.subscribe(decoder.pubsubTopic, peer, many.slice(1))).success, '100 topics')
require((await core.unsubscribe(decoder.pubsubTopic, peer, many.slice(1))).success, 'unsubscribe')

console.log('RESTART')
await until(() => waku.libp2p.getConnections().length === 0, 'the node did not go')
await until(() => connect().then(() => true, () => false), 'the node did not come back')
peer = waku.libp2p.getPeers()[0]
// The SDK subscribes again by itself when a filter peer has connected.
await until(async () => (await core.ping(peer)).success !== null, 'not subscribed again')
mostStreams = 0
await receiveAll()
require(await waku.filter.unsubscribe(decoder), 'unsubscribing')
await until(async () => (await core.ping(peer)).success === null, 'still subscribed')
console.log('OK')
process.exit(0)
