// SPDX-License-Identifier: MIT
// A relay peer on js-libp2p 3 with its gossipsub; see ../relay_scenario.mjs.
import { listenAddresses, messageId, parseArguments, run } from '../relay_scenario.mjs'
import { createLibp2p } from 'libp2p'
import { tcp } from '@libp2p/tcp'
import { webSockets } from '@libp2p/websockets'
import { noise } from '@libp2p/noise'
import { yamux } from '@libp2p/yamux'
import { mplex } from '@libp2p/mplex'
import { identify } from '@libp2p/identify'
import { ping } from '@libp2p/ping'
import { gossipsub, StrictNoSign, TopicValidatorResult } from '@libp2p/gossipsub'
import { multiaddr } from '@multiformats/multiaddr'
import { proto_message } from '@waku/proto'
import { WebSocket } from 'ws'

// Node 22 brings its own.
globalThis.WebSocket ??= WebSocket

const options = parseArguments()
const { WakuMessage } = proto_message
const make = gossipsub({
  msgIdFn: messageId,
  globalSignaturePolicy: StrictNoSign,
  fallbackToFloodsub: false,
  allowPublishToZeroTopicPeers: false
})
const muxers = { yamux: [yamux()], mplex: [mplex()], both: [yamux(), mplex()] }[options.muxer]
const node = await createLibp2p({
  addresses: { listen: listenAddresses(options) },
  transports: [tcp(), webSockets()],
  connectionEncrypters: [noise()],
  streamMuxers: muxers,
  services: {
    identify: identify(),
    ping: ping(),
    pubsub: components => {
      const pubsub = make(components)
      pubsub.protocols = ['/vac/waku/relay/2.0.0'] // its option of that name does nothing
      return pubsub
    }
  }
})
const pubsub = node.services.pubsub
pubsub.topicValidators.set(options.topic, (peer, message) => {
  try {
    const { contentTopic, payload } = WakuMessage.decode(message.data)
    return contentTopic && payload.length ? TopicValidatorResult.Accept : TopicValidatorResult.Reject
  } catch {
    return TopicValidatorResult.Reject
  }
})
await run({ node, pubsub, toMultiaddr: multiaddr, WakuMessage, options })
