// SPDX-License-Identifier: MIT
// A relay peer with js-waku's own relay, on js-libp2p 1; see ../relay_scenario.mjs.
import { listenAddresses, parseArguments, run } from '../relay_scenario.mjs'
import { createLibp2p } from 'libp2p'
import { tcp } from '@libp2p/tcp'
import { webSockets } from '@libp2p/websockets'
import { all } from '@libp2p/websockets/filters'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { mplex } from '@libp2p/mplex'
import { identify } from '@libp2p/identify'
import { ping } from '@libp2p/ping'
import { multiaddr } from '@multiformats/multiaddr'
import { wakuGossipSub } from '@waku/relay'
import { messageValidator } from './node_modules/@waku/relay/dist/message_validator.js'
import { proto_message } from '@waku/proto'

const options = parseArguments()
const muxers = { yamux: [yamux()], mplex: [mplex()], both: [yamux(), mplex()] }[options.muxer]
const node = await createLibp2p({
  addresses: { listen: listenAddresses(options) },
  transports: [tcp(), webSockets({ filter: all })],
  connectionEncryption: [noise()],
  streamMuxers: muxers,
  services: {
    identify: identify(),
    ping: ping(),
    pubsub: wakuGossipSub({ allowPublishToZeroTopicPeers: false })
  }
})
const pubsub = node.services.pubsub
pubsub.topicValidators.set(options.topic, messageValidator)
await run({
  node, pubsub, toMultiaddr: multiaddr, WakuMessage: proto_message.WakuMessage, options
})
