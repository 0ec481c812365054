// SPDX-License-Identifier: MIT
//
// A stock js-waku light node as a client of the services of one node.
//
//   light_client.mjs ADDRESS MUXER PUSHES STORED_TOPIC STORED
//
// MUXER: default (what the SDK brings: mplex) or yamux. PUSHES messages by lightpush v3, as many by
// the legacy protocol, all on one connection; then the STORED messages of STORED_TOPIC are asked for,
// in pages of both directions. Prints what went wrong and ends with 1, or prints OK.

import { connectTo, createStockNode } from './light_node.mjs'
import { require } from '../require.mjs'

const { Protocols } = await import('@waku/sdk')
const { multiaddr } = await import('@multiformats/multiaddr')

const [address, muxer, pushes, storedTopic, stored] = process.argv.slice(2)
const OPERATION_MS = 60000

function inTime (promise, what) {
  const late = new Promise((resolve, reject) =>
    setTimeout(() => reject(new Error(what + ': no answer')), OPERATION_MS).unref())
  return Promise.race([promise, late])
}

const waku = await createStockNode(muxer)
let connections = 0
waku.libp2p.addEventListener('connection:open', event => {
  connections++
  console.log('CONNECTED', event.detail.remoteAddr.toString(), event.detail.multiplexer)
})

async function push (encoder, useLegacy, count) {
  for (let i = 0; i < count; i++) {
    const payload = new TextEncoder().encode(`${useLegacy ? 'legacy' : 'v3'} ${i}`)
    const result = await inTime(waku.lightPush.send(encoder, { payload, timestamp: new Date() },
      { autoRetry: false, useLegacy }), `push ${i}`)
    require(result.failures.length === 0 && result.successes.length === 1,
      'push', i, result.failures.map(failure => failure.error))
  }
}

async function query (contentTopic, options) {
  const decoder = waku.createDecoder({ contentTopic })
  const hashes = []
  const pages = waku.store.queryGenerator([decoder], options)
  for (let page = await inTime(pages.next(), 'page'); !page.done;
    page = await inTime(pages.next(), 'page')) {
    const messages = (await Promise.all(page.value)).filter(Boolean)
    hashes.push(...messages.map(message => message.hashStr))
    require(hashes.length <= 10000, 'the pages do not end')
  }
  return hashes
}

const needed = [Protocols.LightPush, Protocols.Store]
await inTime(connectTo(waku, multiaddr(address), needed), 'dial')

const contentTopic = '/light-client/1/chat/proto'
const encoder = waku.createEncoder({ contentTopic })
await push(encoder, false, Number(pushes))
await push(encoder, true, Number(pushes))
console.log('PUSHED', pushes, 'by each protocol')
require(connections === 1, 'connections:', connections)
await inTime(waku.libp2p.services.ping.ping(waku.libp2p.getPeers()[0]), 'ping')

const ephemeralTopic = '/light-client/1/gone/proto'
await push(waku.createEncoder({ contentTopic: ephemeralTopic, ephemeral: true }), false, 1)

const forward = await query(storedTopic, { paginationForward: true, paginationLimit: 20 })
const backward = await query(storedTopic, { paginationForward: false, paginationLimit: 20 })
require(forward.length === Number(stored), 'forward pages hold', forward.length)
require(new Set(forward).size === forward.length, 'forward pages repeat messages')
require(new Set(backward).size === backward.length, 'backward pages repeat messages')
require([...backward].sort().join() === [...forward].sort().join(), 'backward pages hold others')

const decoder = waku.createDecoder({ contentTopic: storedTopic })
let found = 0
await waku.store.queryWithOrderedCallback([decoder], () => { found++ },
  { messageHashes: [Uint8Array.from(Buffer.from(forward[0].replace(/^0x/, ''), 'hex'))] })
require(found === 1, 'by hash:', found)

const end = Date.now() + OPERATION_MS
let kept = []
while (kept.length < 2 * Number(pushes) && Date.now() < end) {
  kept = await query(contentTopic, { paginationForward: true, paginationLimit: 100 })
}
require(kept.length === 2 * Number(pushes), 'of what was pushed, stored:', kept.length)
require((await query(ephemeralTopic, {})).length === 0, 'an ephemeral message was stored')
console.log('OK')
process.exit(0)
