// Live counts of a filter: one call counts all of its rows.
import { call } from "./api.js";
import { useEffect, useReducer, useRef, useState } from "./ui.js";
import { filterOf, rowAt } from "./filter.js";

const PAUSE = 400;
// No more than one count a second, however fast somebody types.
const APART = 1000;

/**
 * What a tree of rows finds: `{ size, sizes, exact, sample, faults, error, loading }`. `sizes` and `faults` are by row; faults are
 * violations as the server tells them. Rows that
 * the server finds incomplete are left out of the count, with their faults told, so that the others keep theirs.
 */
export function usePreview(tree) {
  const [state, setState] = useState({ sizes: {}, faults: {}, loading: true });
  const [round, retry] = useReducer((n) => n + 1, 0);
  const last = useRef(0);
  const text = JSON.stringify(filterOf(tree));
  useEffect(() => {
    const abort = new AbortController();
    setState((old) => ({ ...old, loading: true }));
    const wait = Math.max(PAUSE, last.current + APART - Date.now());
    const timer = setTimeout(() => {
      last.current = Date.now();
      count(tree, abort.signal).then(
        (found) => setState({ ...found, loading: false }),
        (error) => !abort.signal.aborted && setState((old) => ({ ...old, error, retry, loading: false })),
      );
    }, last.current ? wait : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, round]);
  return state;
}

async function count(tree, signal) {
  const whole = filterOf(tree);
  const ask = ({ filter }) => call("previewSegment", { body: { filter }, signal });
  try {
    return found(await ask(whole), whole, {});
  } catch (error) {
    if (error.status !== 422 || !error.violations.length) throw error;
    const faults = {};
    for (const violation of error.violations) {
      const row = rowAt(whole.places, violation.pointer) ?? tree.id;
      (faults[row] ??= []).push(violation);
    }
    const rest = filterOf(tree, new Set(Object.keys(faults).filter((id) => id !== tree.id)));
    if (faults[tree.id] || !Object.keys(rest.filter).length) return { sizes: {}, faults, size: null, sample: [] };
    return found(await ask(rest), rest, faults);
  }
}

function found({ size_estimate: size, exact, sample, conditions }, { places }, faults) {
  const ids = new Map(places);
  return { size, exact, sample, faults, sizes: Object.fromEntries(conditions.map((one) => [ids.get(one.pointer), one.size])) };
}
