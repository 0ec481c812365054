// SPDX-License-Identifier: MIT
//
// To be imported before the packages, which are therefore imported by await import().

// Node 20 has no Promise.withResolvers, which some of the packages use.
Promise.withResolvers ??= function () {
  let resolve, reject
  const promise = new this((a, b) => { resolve = a; reject = b })
  return { promise, resolve, reject }
}
