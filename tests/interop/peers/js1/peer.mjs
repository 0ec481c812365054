// SPDX-License-Identifier: MIT
// A foreign peer on js-libp2p 1, as js-waku has it; see ../scenario.mjs.
import { ECHO, listenAddress, parseArguments, run } from '../scenario.mjs'
import { createLibp2p } from 'libp2p'
import { tcp } from '@libp2p/tcp'
import { webSockets } from '@libp2p/websockets'
import { all } from '@libp2p/websockets/filters'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { mplex } from '@libp2p/mplex'
import { identify } from '@libp2p/identify'
import { ping } from '@libp2p/ping'
import { createEd25519PeerId, createSecp256k1PeerId } from '@libp2p/peer-id-factory'
import { multiaddr } from '@multiformats/multiaddr'

const STREAMS = { maxInboundStreams: 4096, maxOutboundStreams: 4096 }
const options = parseArguments()
const muxers = { yamux: [yamux()], mplex: [mplex()], both: [yamux(), mplex()] }[options.muxer]
const node = await createLibp2p({
  peerId: options.key === 'secp256k1' ? await createSecp256k1PeerId() : await createEd25519PeerId(),
  addresses: { listen: options.verb === 'listen' ? [listenAddress(options)] : [] },
  transports: [tcp(), webSockets({ filter: all })],
  connectionEncryption: [noise()],
  streamMuxers: muxers,
  connectionManager: { inboundConnectionThreshold: 10000, minConnections: 0 },
  services: { identify: identify({ agentVersion: 'interop-js/1' }), ping: ping() }
})

await node.handle(ECHO, ({ stream }) => { stream.sink(stream.source).catch(() => {}) }, STREAMS)

const identified = new Map()
node.addEventListener('peer:identify', event => {
  const { peerId, agentVersion, protocols } = event.detail
  identified.set(peerId.toString(), { agent: agentVersion, protocols })
})

async function collect (stream) {
  const parts = []
  for await (const bytes of stream.source) parts.push(Buffer.from(bytes.subarray()))
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
    await stream.sink(bytes.length > 0 ? [bytes] : [])
    return await received
  }
}, options)
