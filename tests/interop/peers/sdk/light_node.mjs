// SPDX-License-Identifier: MIT
//
// What the programs of this folder share.

import '../polyfill.mjs'

const { createLightNode } = await import('@waku/sdk')
const { webSockets } = await import('@libp2p/websockets')
const { all } = await import('@libp2p/websockets/filters')
const { tcp } = await import('@libp2p/tcp')
const { yamux } = await import('@chainsafe/libp2p-yamux')

// A stock light node; muxer: default (what the SDK brings: mplex) or yamux.
export function createStockNode (muxer) {
  return createLightNode({
    networkConfig: { clusterId: 16, numShardsInCluster: 8 },
    autoStart: true,
    defaultBootstrap: false,
    discovery: { dns: false, peerExchange: false, peerCache: false },
    libp2p: {
      hideWebSocketInfo: true,
      filterMultiaddrs: false,
      transports: [webSockets({ filter: all }), tcp()],
      ...(muxer === 'yamux' ? { streamMuxers: [yamux()] } : {})
    }
  })
}
