// SPDX-License-Identifier: MIT
//
// What the programs of this folder share.

import '../polyfill.mjs'
import { require } from '../require.mjs'

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

// Until the SDK knows the peer's protocols and shards: waitForPeers may end before identify and
// metadata have, and a request finds no peer then.
export async function connectTo (waku, address, protocols) {
  const end = Date.now() + 60000
  let isIdentified = false
  waku.libp2p.addEventListener('peer:identify', () => { isIdentified = true }, { once: true })
  await waku.dial(address, protocols)
  await waku.waitForPeers(protocols)
  for (;;) {
    const peers = await Promise.all(waku.libp2p.getPeers().map(id => waku.libp2p.peerStore.get(id)))
    // The event comes when all protocols are in the store; those that a stream agreed on are there before.
    if (isIdentified && peers.length > 0 && peers.every(peer => peer.metadata.has('shardInfo'))) {
      return
    }
    require(Date.now() < end, 'identify or metadata did not end')
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
