// What stands above a list: how many rows are chosen, what can be done with them, how far that is and what became of it.
import { allowed } from "./api.js";
import { announce, count, Fragment, html, number, Progress, t, useEffect, useRef, useState } from "./ui.js";
import { acts } from "./acts.js";
import { Csv, MOST_ROWS, offer, readAll } from "./export.js";
import { keepFocus } from "./focus.js";
import { carryOut } from "./work.js";

/** Rows that can be chosen at once beyond those of a page. */
const MOST_CHOSEN = 10000;

/** Rows of one reason that are named. */
const NAMED = 20;

/**
 * `chosen` are rows by their keys, `onChosen(rows)` hears which ones are from now on. `exports` counts how often the whole
 * list was wanted as a file. `hasMore` tells that the list has other pages, `onDone` hears that rows have changed.
 */
export default function Chosen({ id, args, chosen, onChosen, words, nameOf, hasMore, exports, onDone }) {
  const [state, setState] = useState({});
  const running = useRef(null);
  const place = useRef();
  const rows = [...chosen.values()];
  const counted = (amount) => count(amount, ...words);

  // One work at a time. `work(signal, hear)` answers what is shown afterwards.
  const begin = async (title, of, work) => {
    if (running.current) return;
    running.current = new AbortController();
    const { signal } = running.current;
    setState({ title, of, value: 0 });
    let next = {};
    try {
      next = await work(signal, (value) => setState((old) => ({ ...old, value })));
    } catch (error) {
      if (!signal.aborted) announce(error.message, { fault: true });
      next = signal.aborted ? {} : { error };
    }
    if (running.current === null) return;
    running.current = null;
    setState(next);
  };
  useEffect(() => () => {
    running.current?.abort();
    running.current = null;
  }, []);
  // What had the focus is gone once a work begins or ends.
  const wasWorking = useRef(false);
  useEffect(() => {
    if (state.report || document.activeElement === document.body) place.current?.focus();
    if (wasWorking.current && !state.title) focusBack();
    wasWorking.current = Boolean(state.title);
  }, [state]);

  const chooseAll = () => begin(t("Reading the list"), null, async (signal, hear) => {
    const found = [];
    const more = await readAll(id, args, { most: MOST_CHOSEN, signal, hear: (page) => { found.push(...page); hear(found.length); } });
    onChosen(found);
    announce(t("{rows} chosen", { rows: counted(found.length) }), { unseen: true });
    return { note: more && t("These are the first {number}; more match. Filter further, or go on with the others afterwards.", { number: number(MOST_CHOSEN) }) };
  });
  const exportAll = () => begin(t("Writing the file"), null, async (signal, hear) => {
    const csv = new Csv();
    let heard = 0;
    const more = await readAll(id, args, { most: MOST_ROWS, signal, hear: (page) => { csv.add(page); heard += page.length; hear(heard); } });
    offer(id, csv);
    announce(t("The file is in your downloads: {rows}", { rows: count(heard, "row", "rows") }));
    return { note: more && t("The file has the first {number} rows; there are more. Filter by time for the rest, or use the command messaging export.", { number: number(MOST_ROWS) }) };
  });
  const exportChosen = () => {
    const csv = new Csv();
    csv.add(rows);
    offer(id, csv);
    announce(t("The file is in your downloads: {rows}", { rows: count(rows.length, "row", "rows") }));
  };
  useEffect(() => { if (exports) exportAll(); }, [exports]);

  const run = async (act) => {
    const input = act.ask ? await act.ask(counted(rows.length), rows) : {};
    if (!input) return;
    let calls = 0;
    begin(t(act.label), rows.length, async (signal, hear) => {
      // "Show as" shows the first call; the others are like it.
      const one = (group, key) => act.run(group, { key, input, args, quiet: (calls += 1) > 1 });
      const report = await carryOut(rows, one, { size: act.size, signal, hear });
      const { done, failed, left } = report;
      onChosen([...failed.map(({ row }) => row), ...left]);
      const text = [
        t("{rows} done", { rows: counted(done.length) }),
        failed.length && t("{number} failed", { number: number(failed.length) }),
        left.length && t("{number} not begun", { number: number(left.length) }),
      ].filter(Boolean).join(", ");
      announce(`${t(act.label)}: ${text}`, { fault: failed.length > 0 });
      onDone();
      return failed.length || left.length ? { report: { ...report, text: `${t(act.label)}: ${text}` } } : {};
    });
  };

  const { title, of, value, report, note, error } = state;
  if (title) {
    return html`<div class="working"><p><strong>${title}</strong> ${of ? t("{value} of {of}", { value: number(value), of: number(of) }) : count(value, "row", "rows")}${" "}
        <span class="muted">${t("Leaving the page stops it.")}</span></p>
      ${of && html`<${Progress} value=${value} max=${of} label=${title} />`}
      <button type="button" class="small" ref=${place} onClick=${() => running.current?.abort()}>${t("Stop")}</button></div>`;
  }
  return html`<${Fragment}>
    ${rows.length > 0 && html`<strong>${t("{rows} chosen", { rows: counted(rows.length) })}</strong>
      ${hasMore && html`<button type="button" class="small quiet" onClick=${chooseAll}>${t("Choose all that match")}</button>`}
      <button type="button" class="small quiet" onClick=${() => { onChosen([]); setState({}); focusBack(); }}>${t("Choose none")}</button>
      <span class="actions">${acts(id).filter((act) => allowed(act.id)).map((act) => html`<button type="button" key=${act.label} class="small" data-operation=${act.id} onClick=${() => run(act)}>${t(act.label)}</button>`)}
        <button type="button" class="small" onClick=${exportChosen}>${t("As CSV")}</button></span>`}
    ${note && html`<p class="notice warning" role="status">${note}</p>`}
    ${error && html`<p class="notice fault" role="alert">${error.message}</p>`}
    ${report && html`<div class=${`notice ${report.failed.length ? "fault" : "warning"}`} tabindex="-1" ref=${place}><p><strong>${report.text}</strong></p>
      <${Reasons} failed=${report.failed} nameOf=${nameOf} />
      <p class="muted">${t("They are still chosen, so that you can try again.")}</p>
      <button type="button" class="small" onClick=${() => { setState({}); focusBack(); }}>${t("Close")}</button></div>`}
  </${Fragment}>`;
}

// The check box of the page is always there, unless no row is left.
function focusBack() {
  setTimeout(() => { if (document.activeElement === document.body) document.querySelector(".many input")?.focus(); });
  keepFocus();
}

const reasonOf = ({ message, violations = [] }) => (violations.length ? violations.map((one) => one.message).join(" ") : message);

function Reasons({ failed, nameOf }) {
  const reasons = Map.groupBy(failed, ({ error }) => reasonOf(error));
  return html`<ul>${[...reasons].map(([reason, rows]) => html`<li key=${reason}><strong>${reason}</strong><br /><bdi>${rows.slice(0, NAMED).map(({ row }) => nameOf(row)).join("; ")}</bdi>${
    rows.length > NAMED && ` ${t("and {number} more", { number: number(rows.length - NAMED) })}`}</li>`)}</ul>`;
}
