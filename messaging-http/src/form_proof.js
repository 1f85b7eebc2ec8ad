// Proves some work for a form before it is sent: finds a number for which the SHA-256 of the page's token, a colon and the
// number begins with as many zero bits as the form asks for. The browser's own digest is absent over plain http and waits for
// each call, so it is reckoned here (FIPS 180-4).
"use strict";

const primes = [];
for (let number = 2; primes.length < 64; number += 1) {
  if (primes.every((prime) => number % prime)) primes.push(number);
}
const fraction = (value) => Math.floor((value - Math.floor(value)) * 2 ** 32) | 0;
const K = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));
const START = Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
const words = new Int32Array(64);

/** Adds the block of 64 bytes at an offset to a state. */
function addBlock(state, bytes, offset) {
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
  let a = state[0], b = state[1], c = state[2], d = state[3];
  let e = state[4], f = state[5], g = state[6], h = state[7];
  for (let nth = 0; nth < 64; nth += 1) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const one = (h + s1 + ((e & f) ^ (~e & g)) + K[nth] + words[nth]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + one) | 0;
    d = c; c = b; b = a; a = (one + two) | 0;
  }
  state[0] += a; state[1] += b; state[2] += c; state[3] += d;
  state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}

/** The first 32 bits of the SHA-256 of a text of ASCII. */
function firstBits(text) {
  const length = text.length;
  const bytes = new Uint8Array(((length + 8) >> 6) * 64 + 64);
  for (let at = 0; at < length; at += 1) bytes[at] = text.charCodeAt(at);
  bytes[length] = 0x80;
  new DataView(bytes.buffer).setUint32(bytes.length - 4, length * 8);
  const state = Int32Array.from(START);
  for (let at = 0; at < bytes.length; at += 64) addBlock(state, bytes, at);
  return state[0];
}

/** Finds the number in turns of some milliseconds, so that the page stays usable, and answers it as a text. */
function prove(challenge, bits) {
  return new Promise((resolve) => {
    let number = 0;
    const turn = () => {
      const end = Date.now() + 30;
      while (Date.now() < end) {
        for (let some = 0; some < 200; some += 1, number += 1) {
          if (Math.clz32(firstBits(`${challenge}:${number}`)) >= bits) {
            resolve(String(number));
            return;
          }
        }
      }
      setTimeout(turn, 0);
    };
    turn();
  });
}

function begin(form) {
  const { started, proof } = form.elements;
  const status = form.querySelector("[role=status]");
  const proved = prove(started.value, Number(form.dataset.bits)).then((number) => { proof.value = number; });
  form.addEventListener("submit", (event) => {
    if (proof.value) return;
    event.preventDefault();
    status.hidden = false;
    // Without the event, but after the browser found the fields valid.
    proved.then(() => form.submit());
  });
}

if (typeof document !== "undefined") document.querySelectorAll("form[data-bits]").forEach(begin);
