// QR codes (ISO/IEC 18004), for an address that an app on a phone scans: octets as they are, error correction L, versions
// 1 to 20.

const MAX_VERSION = 20;

// By version, from 1: octets for error correction in each block, and the number of blocks.
const CORRECTING = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28];
const BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8];

// The two bits by which error correction L is named.
const LEVEL = 1;

/** The squares of a code by rows, true for dark ones, without the quiet zone around; null for a text that is too long. */
export function qr(text) {
  const octets = new TextEncoder().encode(text);
  let version = 1;
  while (version <= MAX_VERSION && capacity(version) * 8 < 4 + lengthBits(version) + octets.length * 8) version += 1;
  if (version > MAX_VERSION) return null;
  const words = interleaved(version, padded(version, octets));
  const grid = fixed(version);
  place(grid, words);
  return masked(grid);
}

// ---- the words ----

const sizeOf = (version) => version * 4 + 17;
const lengthBits = (version) => (version < 10 ? 8 : 16);

// Words that a version has room for, those for error correction among them.
function roomOf(version) {
  const size = sizeOf(version);
  const along = centers(version).length;
  let modules = size * size - 3 * 64 - (2 * (size - 16)) - 31;
  // Alignment patterns; two rows of them lie on the timing patterns.
  if (along) modules -= (along * along - 3) * 25 - 2 * (along - 2) * 5;
  if (version >= 7) modules -= 36;
  return Math.floor(modules / 8);
}

const capacity = (version) => roomOf(version) - CORRECTING[version - 1] * BLOCKS[version - 1];

// The data with its mode and length, filled up.
function padded(version, octets) {
  const bits = [];
  const put = (value, length) => { for (let at = length - 1; at >= 0; at -= 1) bits.push((value >> at) & 1); };
  put(0b0100, 4);
  put(octets.length, lengthBits(version));
  for (const octet of octets) put(octet, 8);
  const whole = capacity(version) * 8;
  put(0, Math.min(4, whole - bits.length));
  while (bits.length % 8) bits.push(0);
  for (let at = 0; bits.length < whole; at += 1) put(at % 2 ? 0x11 : 0xec, 8);
  return Array.from({ length: whole / 8 }, (_, at) => bits.slice(at * 8, at * 8 + 8).reduce((word, bit) => word * 2 + bit, 0));
}

// The words of all blocks with those that correct them, in the order in which they are drawn.
function interleaved(version, data) {
  const [blocks, correcting] = [BLOCKS[version - 1], CORRECTING[version - 1]];
  const short = Math.floor(data.length / blocks);
  const longer = data.length % blocks;
  const generator = generatorOf(correcting);
  const parts = [];
  for (let block = 0, at = 0; block < blocks; block += 1) {
    const length = short + (block >= blocks - longer ? 1 : 0);
    const own = data.slice(at, at + length);
    parts.push({ own, checks: remainder(own, generator) });
    at += length;
  }
  const words = [];
  for (let at = 0; at <= short; at += 1) for (const { own } of parts) if (at < own.length) words.push(own[at]);
  for (let at = 0; at < correcting; at += 1) for (const { checks } of parts) words.push(checks[at]);
  return words;
}

// Multiplication in GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1.
function times(one, other) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ (product >> 7) * 0x11d;
    if ((other >> bit) & 1) product ^= one;
  }
  return product;
}

// The coefficients of (x - 1)(x - 2)(x - 4)…, without the first, which is 1.
function generatorOf(degree) {
  let coefficients = [1];
  for (let at = 0, root = 1; at < degree; at += 1, root = times(root, 2)) {
    const next = [...coefficients, 0];
    coefficients.forEach((coefficient, place_) => { next[place_ + 1] ^= times(coefficient, root); });
    coefficients = next;
  }
  return coefficients.slice(1);
}

function remainder(data, generator) {
  let rest = generator.map(() => 0);
  for (const word of data) {
    const factor = word ^ rest[0];
    rest = [...rest.slice(1), 0].map((value, at) => value ^ times(generator[at], factor));
  }
  return rest;
}

// ---- the squares ----

// Rows and columns of the centers of alignment patterns.
function centers(version) {
  if (version === 1) return [];
  const steps = Math.floor(version / 7) + 1;
  const last = sizeOf(version) - 7;
  const step = Math.ceil((last - 6) / steps / 2) * 2;
  return [6, ...Array.from({ length: steps }, (_, at) => last - step * (steps - 1 - at))];
}

// A grid with the patterns that are the same in every code of a version; `isFixed` says where nothing else stands.
function fixed(version) {
  const size = sizeOf(version);
  const rows = Array.from({ length: size }, () => Array(size).fill(false));
  const isFixed = Array.from({ length: size }, () => Array(size).fill(false));
  const set = (row, column, dark) => {
    if (row < 0 || column < 0 || row >= size || column >= size) return;
    rows[row][column] = dark;
    isFixed[row][column] = true;
  };
  for (let at = 0; at < size; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  const rings = (row, column, radius, isDark) => {
    for (let down = -radius; down <= radius; down += 1) {
      for (let right = -radius; right <= radius; right += 1) set(row + down, column + right, isDark(Math.max(Math.abs(down), Math.abs(right))));
    }
  };
  for (const [row, column] of [[3, 3], [3, size - 4], [size - 4, 3]]) rings(row, column, 4, (ring) => ring !== 2 && ring !== 4);
  const along = centers(version);
  for (const row of along) {
    for (const column of along) {
      const isAtFinder = (row === 6 && (column === 6 || column === size - 7)) || (row === size - 7 && column === 6);
      if (!isAtFinder) rings(row, column, 2, (ring) => ring !== 1);
    }
  }
  if (version >= 7) {
    const bits = coded(version, 12, 0x1f25);
    for (let at = 0; at < 18; at += 1) {
      const [far, near] = [size - 11 + (at % 3), Math.floor(at / 3)];
      set(near, far, Boolean((bits >> at) & 1));
      set(far, near, Boolean((bits >> at) & 1));
    }
  }
  const grid = { rows, isFixed, size, set };
  format(grid, 0);
  return grid;
}

// A number with the remainder of its division by a generator behind it (BCH code).
function coded(value, degree, generator) {
  let rest = value << degree;
  for (let bit = 31 - Math.clz32(rest || 1); bit >= degree; bit = 31 - Math.clz32(rest || 1)) rest ^= generator << (bit - degree);
  return (value << degree) | rest;
}

// The level and the mask, twice beside the finder patterns.
function format({ set, size }, mask) {
  const bits = coded((LEVEL << 3) | mask, 10, 0x537) ^ 0x5412;
  const bit = (at) => Boolean((bits >> at) & 1);
  for (let at = 0; at < 6; at += 1) set(at, 8, bit(at));
  set(7, 8, bit(6));
  set(8, 8, bit(7));
  set(8, 7, bit(8));
  for (let at = 9; at < 15; at += 1) set(8, 14 - at, bit(at));
  for (let at = 0; at < 8; at += 1) set(8, size - 1 - at, bit(at));
  for (let at = 8; at < 15; at += 1) set(size - 15 + at, 8, bit(at));
  set(size - 8, 8, true);
}

// Draws the words in columns of two, from the right, up and down in turn; the vertical timing pattern is passed over.
function place({ rows, isFixed, size }, words) {
  let at = 0;
  let isUp = true;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right -= 1;
    for (let step = 0; step < size; step += 1) {
      const row = isUp ? size - 1 - step : step;
      for (const column of [right, right - 1]) {
        if (isFixed[row][column] || at >= words.length * 8) continue;
        rows[row][column] = Boolean((words[at >> 3] >> (7 - (at & 7))) & 1);
        at += 1;
      }
    }
    isUp = !isUp;
  }
}

const MASKS = [
  (row, column) => (row + column) % 2 === 0,
  (row) => row % 2 === 0,
  (_, column) => column % 3 === 0,
  (row, column) => (row + column) % 3 === 0,
  (row, column) => (Math.floor(row / 2) + Math.floor(column / 3)) % 2 === 0,
  (row, column) => ((row * column) % 2) + ((row * column) % 3) === 0,
  (row, column) => (((row * column) % 2) + ((row * column) % 3)) % 2 === 0,
  (row, column) => (((row + column) % 2) + ((row * column) % 3)) % 2 === 0,
];

// The squares under the mask that is easiest to read.
function masked(grid) {
  const { isFixed } = grid;
  let best = null;
  for (let mask = 0; mask < MASKS.length; mask += 1) {
    format(grid, mask);
    const rows = grid.rows.map((line, row) => line.map((dark, column) => (isFixed[row][column] ? dark : dark !== MASKS[mask](row, column))));
    const penalty = penaltyOf(rows);
    if (!best || penalty < best.penalty) best = { rows, penalty };
  }
  return best.rows;
}

const FINDERS = ["10111010000", "00001011101"];

function penaltyOf(rows) {
  const size = rows.length;
  const columns = rows.map((_, column) => rows.map((line) => line[column]));
  let penalty = 0;
  for (const line of [...rows, ...columns]) {
    const text = line.map(Number).join("");
    for (const [run] of text.matchAll(/0{5,}|1{5,}/g)) penalty += run.length - 2;
    for (let at = 0; at + 11 <= size; at += 1) if (FINDERS.includes(text.slice(at, at + 11))) penalty += 40;
  }
  let dark = 0;
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < size; column += 1) {
      const here = rows[row][column];
      dark += here ? 1 : 0;
      if (row + 1 < size && column + 1 < size && [rows[row][column + 1], rows[row + 1][column], rows[row + 1][column + 1]].every((other) => other === here)) penalty += 3;
    }
  }
  return penalty + Math.floor(Math.abs((dark / (size * size)) * 20 - 10)) * 10;
}
