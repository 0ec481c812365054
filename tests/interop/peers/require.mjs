// SPDX-License-Identifier: MIT

// Ends the program when the fact is none.
export function require (fact, ...what) {
  if (!fact) {
    console.log('FAILED', ...what)
    process.exit(1)
  }
}
