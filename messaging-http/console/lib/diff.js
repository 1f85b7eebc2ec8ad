// What differs between two texts, by lines.
import { html, t } from "./ui.js";

const CONTEXT = 3;
// Beyond this the table of the comparison would take too much memory; the parts are then shown one after the other.
const LARGEST = 4000000;

/** The lines of both texts in one order: `[sign, text]`, where sign is `+`, `-` or a space. */
export function diff(before, after) {
  const old = before === "" ? [] : before.split("\n");
  const now = after === "" ? [] : after.split("\n");
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const same = (line) => [" ", line];
  return [
    ...old.slice(0, start).map(same),
    ...between(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...old.slice(old.length - end).map(same),
  ];
}

// The longest common subsequence by its table of lengths, read from the beginning.
function between(old, now) {
  const width = now.length + 1;
  const lines = [];
  let a = 0;
  let b = 0;
  if (old.length * now.length <= LARGEST) {
    const lengths = new Uint16Array((old.length + 1) * width);
    for (let i = old.length - 1; i >= 0; i -= 1) {
      for (let j = now.length - 1; j >= 0; j -= 1) {
        lengths[i * width + j] = old[i] === now[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
      }
    }
    while (a < old.length && b < now.length) {
      if (old[a] === now[b]) {
        lines.push([" ", old[a]]);
        a += 1;
        b += 1;
      } else if (lengths[(a + 1) * width + b] >= lengths[a * width + b + 1]) {
        lines.push(["-", old[a]]);
        a += 1;
      } else {
        lines.push(["+", now[b]]);
        b += 1;
      }
    }
  }
  return [...lines, ...old.slice(a).map((line) => ["-", line]), ...now.slice(b).map((line) => ["+", line])];
}

const SAID = { "+": "added:", "-": "removed:" };

/** The difference of two texts; of what is the same only a few lines around. */
export function Diff({ before, after, label }) {
  const lines = diff(before ?? "", after ?? "");
  const near = lines.map(() => false);
  lines.forEach(([sign], at) => {
    if (sign !== " ") near.fill(true, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
  });
  if (!near.includes(true)) return null;
  const drawn = [];
  for (let at = 0; at < lines.length; at += 1) {
    const [sign, text] = lines[at];
    if (near[at]) {
      const line = html`<span class="sr">${SAID[sign] && t(SAID[sign])}</span><span aria-hidden="true">${sign} </span>${text}`;
      drawn.push(sign === "+" ? html`<ins>${line}</ins>` : sign === "-" ? html`<del>${line}</del>` : html`<span>${line}</span>`);
    } else if (at === 0 || near[at - 1]) {
      drawn.push(html`<span class="muted">…</span>`);
    }
  }
  return html`<pre class="diff" tabindex="0" role="region" aria-label=${label}>${drawn}</pre>`;
}
