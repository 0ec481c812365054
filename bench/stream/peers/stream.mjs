// SPDX-License-Identifier: MIT
// js-libp2p 3 moving bytes: stream.mjs serve | stream.mjs send MULTIADDR BYTES STREAMS MESSAGE_BYTES
// The protocol and what is printed are those of bench/stream/stream_bench.h. Run from a folder that
// has the packages of tests/interop/peers/js3.
import { createLibp2p } from 'libp2p'
import { tcp } from '@libp2p/tcp'
import { noise } from '@libp2p/noise'
import { yamux } from '@libp2p/yamux'
import { multiaddr } from '@multiformats/multiaddr'

Promise.withResolvers ??= function () {
  let resolve, reject
  const promise = new this((a, b) => { resolve = a; reject = b })
  return { promise, resolve, reject }
}

const SINK = '/sluice/sink/1.0.0'
const MANY = { maxInboundStreams: 4096, maxOutboundStreams: 4096 }
const [verb, address, bytes, streams, messageBytes] = process.argv.slice(2)
const node = await createLibp2p({
  addresses: { listen: verb === 'serve' ? ['/ip4/127.0.0.1/tcp/0'] : [] },
  transports: [tcp()],
  connectionEncrypters: [noise()],
  streamMuxers: [yamux()],
  connectionManager: { inboundConnectionThreshold: 10000 }
})

function cpuSeconds (since) {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1e6
}

async function take (stream) {
  const start = process.cpuUsage()
  let count = 0
  for await (const piece of stream) count += piece.byteLength
  const reply = Buffer.alloc(16)
  reply.writeBigUInt64BE(BigInt(count), 0)
  reply.writeBigUInt64BE(BigInt(Math.round(cpuSeconds(start) * 1e9)), 8)
  stream.send(reply)
  await stream.close()
}

async function sendOne (connection, total, message) {
  const stream = await connection.newStream(SINK, MANY)
  const reply = (async () => {
    const parts = []
    for await (const piece of stream) parts.push(Buffer.from(piece.subarray()))
    return Buffer.concat(parts)
  })()
  for (let left = total; left > 0;) {
    const n = Math.min(left, message.length)
    if (!stream.send(n === message.length ? message : message.subarray(0, n))) await stream.onDrain()
    left -= n
  }
  await stream.close()
  return Number((await reply).readBigUInt64BE(8)) / 1e9
}

if (verb === 'serve') {
  await node.handle(SINK, take, MANY)
  console.log(`LISTEN ${node.getMultiaddrs()[0]}`)
  process.stdin.on('end', () => process.exit(0)).resume()
} else {
  const connection = await node.dial(multiaddr(address))
  const message = new Uint8Array(Number(messageBytes))
  const start = process.hrtime.bigint()
  const cpu = process.cpuUsage()
  const each = Math.floor(Number(bytes) / Number(streams))
  const replies = await Promise.all(
    Array.from({ length: Number(streams) }, () => sendOne(connection, each, message)))
  const seconds = Number(process.hrtime.bigint() - start) / 1e9
  console.log(`RESULT ${bytes} ${seconds.toFixed(6)} ${cpuSeconds(cpu).toFixed(6)} ${Math.max(...replies).toFixed(6)}`)
  process.exit(0)
}
