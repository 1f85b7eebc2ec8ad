import { carryOut, walk } from "../lib/work.js";
import { equal, holds } from "./check.js";

const signal = new AbortController().signal;
const numbers = (count) => Array.from({ length: count }, (_, nth) => nth);
const refusal = (status, retryAfter) => Object.assign(new Error(`status ${status}`), { status, retryAfter });
// A turn of other work instead of a wait.
const turn = () => new Promise((resolve) => { queueMicrotask(resolve); });

export async function four_calls_are_under_way_at_most_and_every_row_has_its_turn() {
  let [running, most] = [0, 0];
  const counts = [];
  const act = async () => {
    running += 1;
    most = Math.max(most, running);
    await turn();
    running -= 1;
  };
  const { done, failed, left } = await carryOut(numbers(21), act, { signal, hear: (count) => counts.push(count) });
  equal([done.toSorted((one, other) => one - other), failed, left, most], [numbers(21), [], [], 4]);
  equal([counts.length, counts.at(-1)], [21, 21]);
}

export async function what_fails_is_told_with_its_reason_and_stops_nothing() {
  const act = async ([row]) => { if (row % 2) throw refusal(409); };
  const { done, failed } = await carryOut(numbers(6), act, { signal });
  equal([done, failed.map(({ row, error }) => [row, error.status])], [[0, 2, 4], [[1, 409], [3, 409], [5, 409]]]);
}

export async function a_call_that_was_put_off_is_made_again_under_its_key() {
  const waits = [];
  const keys = new Map();
  const act = async ([row], key) => {
    keys.set(row, [...(keys.get(row) ?? []), key]);
    if (row === 1 && keys.get(row).length < 3) throw refusal(429, 7);
  };
  const pause = async (seconds) => { waits.push(seconds); };
  const { done, failed } = await carryOut(numbers(3), act, { signal, pause });
  equal([done.length, failed, waits], [3, [], [7, 7]]);
  equal([keys.get(1).length, new Set(keys.get(1)).size, new Set([...keys.values()].flat()).size], [3, 1, 3]);
}

export async function the_others_wait_too_when_one_was_put_off() {
  const events = [];
  const act = async ([row]) => {
    events.push(row);
    if (events.length === 1) throw refusal(429, 1);
  };
  let end;
  const waiting = new Promise((resolve) => { end = resolve; });
  const work = carryOut(numbers(9), act, { signal, pause: () => waiting });
  for (let round = 0; round < 30; round += 1) await turn();
  // The four that were under way when the first was put off.
  holds(events.length <= 4, `${events}`);
  end();
  equal((await work).done.length, 9);
}

export async function a_group_tells_which_of_its_rows_were_not_done() {
  const groups = [];
  const act = async (group) => {
    groups.push(group.length);
    return group.includes(3) ? [{ row: 3, error: { message: "gone" } }] : undefined;
  };
  const { done, failed } = await carryOut(numbers(7), act, { size: 3, signal });
  equal([groups, done.length, failed], [[3, 3, 1], 6, [{ row: 3, error: { message: "gone" } }]]);
}

export async function nothing_is_begun_once_it_is_stopped() {
  const stop = new AbortController();
  const begun = [];
  const act = async ([row]) => {
    begun.push(row);
    await turn();
    if (row === 1) stop.abort();
  };
  const { done, failed, left } = await carryOut(numbers(50), act, { signal: stop.signal });
  equal([done.length + left.length, failed, begun.length === done.length], [50, [], true]);
  holds(left.length > 40, `${left.length}`);
}

export async function a_server_that_is_gone_is_not_asked_for_every_row() {
  const act = async () => { throw refusal(0); };
  const { failed, left } = await carryOut(numbers(50), act, { signal });
  equal([failed.length <= 4, failed.length + left.length], [true, 50]);
}

const listing = (pages) => {
  const asked = [];
  const ask = async (cursor) => {
    asked.push(cursor);
    const at = cursor ?? 0;
    return { data: pages[at], next_cursor: at + 1 < pages.length ? at + 1 : null };
  };
  return { ask, asked };
};

export async function all_pages_are_read_or_as_many_rows_as_there_may_be() {
  for (const [most, rows, more, pages] of [[100, [1, 2, 3, 4, 5], false, 3], [5, [1, 2, 3, 4, 5], false, 3], [3, [1, 2, 3], true, 2], [2, [1, 2], true, 1]]) {
    const { ask, asked } = listing([[1, 2], [3, 4], [5]]);
    const heard = [];
    equal(await walk(ask, { most, signal, hear: (page) => heard.push(...page) }), more);
    equal([heard, asked.length], [rows, pages]);
  }
}

export async function reading_waits_when_the_server_asks_for_it_and_ends_when_it_is_stopped() {
  const stop = new AbortController();
  const waits = [];
  const ask = async () => { throw refusal(429, 3); };
  const pause = async (seconds) => {
    waits.push(seconds);
    if (waits.length === 2) stop.abort();
  };
  const error = await walk(ask, { most: 9, signal: stop.signal, hear: () => {}, pause }).catch((one) => one);
  equal([error.name, waits], ["AbortError", [3, 3]]);
}
