// SPDX-License-Identifier: MIT
// What a foreign relay peer does together with another one and Sluice between them.
//
//   relay.mjs --topic T --send N --expect M [--dial MULTIADDR] [--listen tcp|ws]
//             [--muxer yamux|mplex|both] [--paced false]
//
// Prints "LISTEN multiaddr" when it listens, and "READY" once it has a peer in its mesh. After a line
// on standard input it publishes N messages, at most 32 ahead of what it has received (unless
// --paced false), until M have come. Then it prints
//   "SENT count digest" and "GOT count digest copies", the digests over the sorted SHA-256 of the
// messages' bytes, and ends with 0 when the next line, or the end, of standard input comes.
import './polyfill.mjs'
import { createHash, randomFillSync } from 'node:crypto'
import { createInterface } from 'node:readline'

const SIZES = [100, 10000, 50000, 140000]
const WINDOW = 32
const TIME_LIMIT_MS = 120000
// Field 77, which no schema knows: forwarded messages have to keep it.
const UNKNOWN_FIELD = Buffer.from([0xea, 0x04, 0x03, 1, 2, 3])

export function parseArguments () {
  const args = process.argv.slice(2)
  const options = { muxer: 'yamux', send: '0', expect: '0', paced: 'true' }
  for (let i = 0; i < args.length; i += 2) options[args[i].replace(/^--/, '')] = args[i + 1]
  return options
}

export function listenAddresses (options) {
  if (!options.listen) return []
  return [options.listen === 'ws' ? '/ip4/127.0.0.1/tcp/0/ws' : '/ip4/127.0.0.1/tcp/0']
}

export function messageId ({ data }) {
  return new Uint8Array(createHash('sha256').update(data).digest())
}

const pause = ms => new Promise(resolve => setTimeout(resolve, ms))
const hashOf = bytes => createHash('sha256').update(bytes).digest('hex')
const digestOf = hashes => hashOf([...hashes].sort().join('\n'))

function makeMessage (WakuMessage, i) {
  const payload = randomFillSync(Buffer.alloc(SIZES[i % SIZES.length]))
  const timestamp = BigInt(Date.now()) * 1000000n
  const encoded = WakuMessage.encode({ payload, contentTopic: '/interop/1/relay/proto', timestamp })
  return new Uint8Array(Buffer.concat([encoded, UNKNOWN_FIELD]))
}

export async function run ({ node, pubsub, toMultiaddr, WakuMessage, options }) {
  const limit = setTimeout(() => {
    console.log(`TIMEOUT sent ${sent.size} got ${got.size} of ${options.expect}`)
    process.exit(3)
  }, TIME_LIMIT_MS)
  const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const sent = new Set()
  const got = new Set()
  let copies = 0
  pubsub.addEventListener('gossipsub:message', event => {
    const { topic, data } = event.detail.msg
    const hash = hashOf(data)
    if (topic !== options.topic) return
    if (got.has(hash)) copies++
    got.add(hash)
  })
  pubsub.subscribe(options.topic)
  for (const address of node.getMultiaddrs()) console.log(`LISTEN ${address}`)
  if (options.dial) await node.dial(toMultiaddr(options.dial))
  while (pubsub.getMeshPeers(options.topic).length === 0) await pause(20)
  console.log('READY')
  await input.next()
  const paced = options.paced === 'true'
  for (let i = 0; i < Number(options.send); i++) {
    const message = makeMessage(WakuMessage, i)
    sent.add(hashOf(message))
    await pubsub.publish(options.topic, message)
    while (paced && i + 1 - got.size >= WINDOW) await pause(1)
  }
  while (got.size < Number(options.expect)) await pause(5)
  console.log(`SENT ${sent.size} ${digestOf(sent)}`)
  console.log(`GOT ${got.size} ${digestOf(got)} ${copies}`)
  await input.next()
  clearTimeout(limit)
  await Promise.race([node.stop(), pause(2000)])
  process.exit(0)
}
