// Work on many rows: what a listing holds read page by page, and one call after the other made for chosen rows.
import { idempotencyKey } from "./api.js";

/** Calls that are under way at the same time. */
const AT_ONCE = 4;

/** How often one call is made again because the server asked for it; with the waits between them that is minutes. */
const ATTEMPTS = 30;

// Comes to an end after so many seconds, or when it is stopped.
function wait(seconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

// Makes a call until it is no longer put off. All calls that share `until` wait as long as one of them was told to.
async function patiently(make, { signal, pause, until }) {
  for (let attempt = 1; ; attempt += 1) {
    await until.wait;
    signal.throwIfAborted();
    try {
      return await make();
    } catch (error) {
      if (!error.retryAfter || attempt >= ATTEMPTS) throw error;
      until.wait = pause(error.retryAfter, signal);
    }
  }
}

/**
 * Reads page after page: `ask(cursor)` answers one, `hear(rows)` is told its rows. Ends after `most` rows, and answers whether
 * there are more; throws what `ask` throws, and when it is stopped.
 */
export async function walk(ask, { most, signal, hear, pause = wait }) {
  const until = {};
  for (let cursor, heard = 0; ;) {
    const page = await patiently(() => ask(cursor), { signal, pause, until });
    signal.throwIfAborted();
    const rows = page.data.slice(0, most - heard);
    heard += rows.length;
    hear(rows);
    cursor = page.next_cursor;
    if (!cursor) return rows.length < page.data.length;
    if (heard >= most) return true;
  }
}

// What the next call would be answered too: the server is not there, or does not know the caller.
const isOfAll = ({ status }) => status === 0 || status === 401 || status === 403;

/**
 * Calls `act(group, key)` for groups of at most `size` rows, a few at a time; `key` is the Idempotency-Key of the group. It may
 * answer `[{ row, error }]`, rows that were not done; when it throws, none was. `hear(count)` is told how many rows are behind.
 * Answers `{ done, failed, left }`: rows that were done, those that were not with the error, and those that were not begun because
 * `signal` stopped it or the server is gone.
 */
export async function carryOut(rows, act, { size = 1, signal, hear = () => {}, pause = wait }) {
  const until = {};
  const [done, failed] = [[], []];
  const left = [];
  let next = 0;
  let isOver = false;
  const worker = async () => {
    while (next < rows.length && !isOver && !signal.aborted) {
      const group = rows.slice(next, next + size);
      next += group.length;
      const key = idempotencyKey();
      try {
        const refused = await patiently(() => act(group, key), { signal, pause, until }) ?? [];
        failed.push(...refused);
        done.push(...group.filter((row) => !refused.some((one) => one.row === row)));
      } catch (error) {
        if (error.name === "AbortError") left.push(...group);
        else failed.push(...group.map((row) => ({ row, error })));
        isOver ||= isOfAll(error);
      }
      hear(done.length + failed.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { done, failed, left: [...left, ...rows.slice(next)] };
}
