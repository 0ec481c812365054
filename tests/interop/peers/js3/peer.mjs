// SPDX-License-Identifier: MIT
// A foreign peer on js-libp2p 3; see ../scenario.mjs.
import { ECHO, listenAddress, parseArguments, run } from '../scenario.mjs'
import { createLibp2p } from 'libp2p'
import { tcp } from '@libp2p/tcp'
import { webSockets } from '@libp2p/websockets'
import { noise } from '@libp2p/noise'
import { yamux } from '@libp2p/yamux'
import { mplex } from '@libp2p/mplex'
import { identify } from '@libp2p/identify'
import { ping } from '@libp2p/ping'
import { generateKeyPair } from '@libp2p/crypto/keys'
import { multiaddr } from '@multiformats/multiaddr'
import { WebSocket } from 'ws'

// Node 22 brings its own.
globalThis.WebSocket ??= WebSocket

const STREAMS = { maxInboundStreams: 4096, maxOutboundStreams: 4096 }
const options = parseArguments()
// By default its mplex closes a connection on which a peer opens more than five streams in a second.
const manyStreams = mplex({ disconnectThreshold: 1e6 })
const muxers = { yamux: [yamux()], mplex: [manyStreams], both: [yamux(), manyStreams] }[options.muxer]
const node = await createLibp2p({
  privateKey: await generateKeyPair(options.key === 'secp256k1' ? 'secp256k1' : 'Ed25519'),
  addresses: { listen: options.verb === 'listen' ? [listenAddress(options)] : [] },
  transports: [tcp(), webSockets()],
  connectionEncrypters: [noise()],
  streamMuxers: muxers,
  connectionManager: { inboundConnectionThreshold: 10000 },
  nodeInfo: { userAgent: 'interop-js/3' },
  services: { identify: identify(), ping: ping() }
})

async function send (stream, bytes) {
  if (!stream.send(bytes)) await stream.onDrain()
}

await node.handle(ECHO, async stream => {
  for await (const bytes of stream) await send(stream, bytes)
  await stream.close()
}, STREAMS)

const identified = new Map()
node.addEventListener('peer:identify', event => {
  const { peerId, agentVersion, protocols } = event.detail
  identified.set(peerId.toString(), { agent: agentVersion, protocols })
})

async function collect (stream) {
  const parts = []
  for await (const bytes of stream) parts.push(Buffer.from(bytes.subarray()))
  return Buffer.concat(parts)
}

await run({
  dial: address => node.dial(multiaddr(address)),
  addresses: () => node.getMultiaddrs(),
  muxer: connection => connection.multiplexer,
  stop: () => node.stop(),
  ping: connection => node.services.ping.ping(connection.remotePeer),
  identified: async connection => {
    const peer = connection.remotePeer.toString()
    while (!identified.has(peer)) await new Promise(resolve => setTimeout(resolve, 10))
    return identified.get(peer)
  },
  echo: async (connection, bytes) => {
    const stream = await connection.newStream(ECHO, STREAMS)
    const received = collect(stream)
    if (bytes.length > 0) await send(stream, bytes)
    await stream.close()
    return await received
  }
}, options)
