// The SHA-256 of a file. The browser's own is there only over https and on this machine; elsewhere, and for files that
// should not stand in memory as a whole, it is reckoned here, part by part.

const PART = 4 << 20;
const primes = [];
for (let number = 2; primes.length < 64; number += 1) {
  if (primes.every((prime) => number % prime)) primes.push(number);
}
// The first 32 bits of the fractions of roots of the primes (FIPS 180-4, section 4.2.2 and 5.3.3).
const fraction = (value) => Math.floor((value - Math.floor(value)) * 2 ** 32) | 0;
const K = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));
const START = Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));

/** Takes bytes in parts; `digest()` answers the sum as hexadecimal digits. */
export class Sha256 {
  constructor() {
    this.state = Int32Array.from(START);
    this.rest = new Uint8Array(64);
    this.filled = 0;
    this.length = 0;
    this.words = new Int32Array(64);
  }

  update(bytes) {
    this.length += bytes.length;
    let at = 0;
    if (this.filled) {
      at = Math.min(64 - this.filled, bytes.length);
      this.rest.set(bytes.subarray(0, at), this.filled);
      this.filled += at;
      if (this.filled < 64) return this;
      this.block(this.rest, 0);
      this.filled = 0;
    }
    for (; at + 64 <= bytes.length; at += 64) this.block(bytes, at);
    this.rest.set(bytes.subarray(at));
    this.filled = bytes.length - at;
    return this;
  }

  block(bytes, offset) {
    const { words, state } = this;
    for (let nth = 0; nth < 16; nth += 1) {
      const at = offset + nth * 4;
      words[nth] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
    }
    for (let nth = 16; nth < 64; nth += 1) {
      const x = words[nth - 15];
      const y = words[nth - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      words[nth] = (words[nth - 16] + s0 + words[nth - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let nth = 0; nth < 64; nth += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const one = (h + s1 + ((e & f) ^ (~e & g)) + K[nth] + words[nth]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + one) | 0;
      d = c; c = b; b = a; a = (one + two) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((value, nth) => { state[nth] = (state[nth] + value) | 0; });
  }

  digest() {
    const { length } = this;
    const end = new Uint8Array(this.filled < 56 ? 64 - this.filled : 128 - this.filled);
    end[0] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(end.length - 8, Math.floor(length / 2 ** 29));
    view.setUint32(end.length - 4, (length * 8) >>> 0);
    this.update(end);
    return Array.from(this.state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }
}

/** The SHA-256 of a file, as hexadecimal digits. */
export async function sha256(file) {
  if (globalThis.crypto?.subtle && file.size <= PART * 4) {
    const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
    return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  const sum = new Sha256();
  for (let at = 0; at < file.size; at += PART) {
    sum.update(new Uint8Array(await file.slice(at, at + PART).arrayBuffer()));
  }
  return sum.digest();
}
