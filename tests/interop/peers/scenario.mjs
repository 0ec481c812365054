// SPDX-License-Identifier: MIT
// What a foreign peer does against Sluice, whatever version of js-libp2p it is made of.
//
//   peer.mjs listen [--transport tcp|ws] [--muxer yamux|mplex|both] [--key ed25519|secp256k1]
//   peer.mjs dial MULTIADDR [--muxer ...] [--key ...] [--rounds quick|full]
//
// `listen` prints "LISTEN multiaddr" and serves echo until its standard input ends. `dial` runs the
// scenario, prints "OK" and exits with 0, or says what went wrong and exits with 1.

import './polyfill.mjs'

export const ECHO = '/sluice/echo/1.0.0'
const SIZES = [0, 1, 65519, 262145, 10 * 1024 * 1024]
const TIME_LIMIT_MS = 150000

export function parseArguments () {
  const args = process.argv.slice(2)
  const options = { verb: args[0], transport: 'tcp', muxer: 'both', key: 'ed25519', rounds: 'full' }
  let rest = args.slice(1)
  if (options.verb === 'dial') {
    options.address = rest[0]
    rest = rest.slice(1)
  }
  for (let i = 0; i < rest.length; i += 2) options[rest[i].replace(/^--/, '')] = rest[i + 1]
  return options
}

export function listenAddress (options) {
  return options.transport === 'ws' ? '/ip4/127.0.0.1/tcp/0/ws' : '/ip4/127.0.0.1/tcp/0'
}

function check (condition, text) {
  if (!condition) throw new Error(text)
}

// Bytes that differ at every offset and from payload to payload.
function payload (size, seed) {
  const bytes = Buffer.allocUnsafe(size)
  let state = (seed * 2654435761 + 12345) >>> 0
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    bytes[i] = state >>> 24
  }
  return bytes
}

async function checkEcho (node, connection, size, seed) {
  const sent = payload(size, seed)
  const received = await node.echo(connection, sent)
  check(Buffer.compare(sent, received) === 0, `echo of ${size} bytes came back different (${received.length} bytes)`)
}

async function waitForIdentify (node, connection) {
  const identified = await node.identified(connection)
  check(identified.agent.startsWith('sluice/'), `agent is ${identified.agent}`)
  for (const id of ['/ipfs/id/1.0.0', '/ipfs/ping/1.0.0', ECHO]) {
    check(identified.protocols.includes(id), `identify does not list ${id}`)
  }
}

async function dial (node, options) {
  const connection = await node.dial(options.address)
  await waitForIdentify(node, connection)
  check(await node.ping(connection) >= 0, 'no round trip time')
  for (let i = 0; i < SIZES.length; i++) await checkEcho(node, connection, SIZES[i], i)
  const [turns, together] = options.rounds === 'quick' ? [50, 20] : [1000, 100]
  for (let i = 0; i < turns; i++) await checkEcho(node, connection, 100, i)
  const all = []
  for (let i = 0; i < together; i++) all.push(checkEcho(node, connection, 10000, i))
  await Promise.all(all)
  check(await node.ping(connection) >= 0, 'no ping after the streams')
  console.log(`MUXER ${node.muxer(connection)}`)
  await node.stop()
}

async function listen (node) {
  for (const address of node.addresses()) console.log(`LISTEN ${address}`)
  await new Promise(resolve => process.stdin.on('end', resolve).resume())
  await node.stop()
}

export async function run (node, options) {
  const timer = setTimeout(() => { console.log('FAILED time limit'); process.exit(1) }, TIME_LIMIT_MS)
  try {
    await (options.verb === 'dial' ? dial(node, options) : listen(node))
    console.log('OK')
    process.exitCode = 0
  } catch (error) {
    console.log(`FAILED ${error.message}`)
    console.error(error)
    process.exit(1)
  }
  clearTimeout(timer)
  setTimeout(() => process.exit(0), 500).unref()
}
