// Forms of one operation. No rule stands here: lengths and choices come from the API's own schema, and what the server
// refuses is shown at the control that its pointer names, or on top.
import { announce, createContext, Failed, html, momentOf, t, useContext, useEffect, useId, useMemo, useReducer, useRef, useState, wallOf, words, zone } from "./ui.js";
import { allowed, call, idempotencyKey, missing } from "./api.js";

const Context = createContext(null);

let schemas;

/** The members of an operation's body by their dotted names, as the API describes them. */
async function schemaOf(id) {
  schemas ??= await import("../schemas.js").then((module) => module.schemas);
  return schemas[id]?.body ?? {};
}

const pointerOf = (name) => `/${name.replaceAll(".", "/")}`;

function read(values, name) {
  return name.split(".").reduce((value, part) => value?.[part], values);
}

function written(values, name, value) {
  const [first, ...rest] = name.split(".");
  const copy = { ...(values ?? {}) };
  copy[first] = rest.length ? written(copy[first], rest.join("."), value) : value;
  return copy;
}

/**
 * A form that makes one call.
 *
 * `id`, `path`: the operation. `initial`: the values at the beginning. `body(values)` makes the body of them, maybe later; without it
 * they are the body, without those that are empty. `onDone(answer, values)` hears the answer, `onChange(values)` every
 * change. `refusal(failure, values)` may tell a refusal in other words than the server's, as `{ text, help }`. `submit` is the text of the button; `extra` stands beside it; `wide` lets it take the whole width.
 */
export function Form({ id, path, initial = {}, body, onDone, onChange, refusal, submit = t("Save"), extra, done, danger, wide, children }) {
  const [values, setValues] = useState(initial);
  const [error, setError] = useState(null);
  // Controls that were changed since the refusal: what was said about them is no longer about what they hold.
  const [changed, setChanged] = useState([]);
  const [busy, setBusy] = useState(false);
  const [schema, setSchema] = useState({});
  const form = useRef();
  // One key for one input: sending it again after a broken connection does nothing twice.
  const sent = useRef({});
  const names = useRef(new Set());
  useEffect(() => { schemaOf(id).then(setSchema); }, [id]);

  const violations = useMemo(() => {
    const found = {};
    for (const { pointer, parameter, message } of error?.violations ?? []) {
      const place = pointer ?? `/${parameter}`;
      const name = [...names.current].find((known) => place === pointerOf(known) || place.startsWith(`${pointerOf(known)}/`));
      if (name && changed.includes(name)) continue;
      (found[name ?? ""] ??= []).push(name && place !== pointerOf(name) ? `${place.slice(pointerOf(name).length + 1)}: ${message}` : message);
    }
    return found;
  }, [error, changed]);
  const isRefused = error && (!error.violations?.length || Object.keys(violations).length > 0);

  const change = (name, value) => {
    if (violations[name]) setChanged([...changed, name]);
    setValues((old) => {
      const next = written(old, name, value);
      onChange?.(next);
      return next;
    });
  };

  const run = async (event) => {
    event.preventDefault();
    // What is typed but is no JSON yet is not in the values; the form would send something else than it shows.
    const broken = [...form.current.elements].find((control) => control.validity?.customError);
    if (broken) {
      broken.focus();
      announce(broken.validationMessage, { fault: true });
      return;
    }
    const input = body ? await body(values) : withoutEmpty(values);
    const text = JSON.stringify(input);
    if (sent.current.text !== text) sent.current = { text, key: idempotencyKey() };
    setBusy(true);
    setError(null);
    setChanged([]);
    try {
      const answer = await call(id, { path, body: input, key: sent.current.key });
      sent.current = {};
      if (done) announce(done);
      onDone?.(answer, values);
    } catch (failure) {
      setError(failure);
      announce(refusal?.(failure, values)?.text ?? failure.message, { fault: true });
      requestAnimationFrame(() => {
        // What is wrong may stand in a part that is folded away.
        for (const control of form.current?.querySelectorAll("details [aria-invalid=true]") ?? []) control.closest("details").open = true;
        form.current?.querySelector("[aria-invalid=true], [role=alert]")?.focus();
      });
    } finally {
      setBusy(false);
    }
  };

  const context = { values, change, schema, violations, error, changed, names: names.current };
  const lacking = missing(id);
  return html`<${Context.Provider} value=${context}>
    <form ref=${form} class=${wide ? "form wide" : "form"} novalidate onSubmit=${run} data-operation=${id}>
      ${isRefused && html`<${Summary} error=${error} violations=${violations} told=${refusal?.(error, values)} />`}
      ${children}
      <div class="actions">
        <button type="submit" class=${danger ? "danger" : "primary"} disabled=${busy || !allowed(id)}>${busy ? t("One moment") : submit}</button>
        ${typeof extra === "function" ? extra(values) : extra}
        ${lacking && html`<span class="muted">${t("Needs {right}.", { right: lacking })}</span>`}
      </div>
    </form>
  </${Context.Provider}>`;
}

/**
 * Controls of a part of a larger input, which somebody else sends. `onChange(next)` hears all values after a change;
 * `errors` are violations whose pointers begin at `values`. What no control shows stands on top.
 */
export function Fields({ values, onChange, schema = {}, errors = [], children }) {
  const names = useRef(new Set());
  const [, again] = useReducer((n) => n + 1, 0);
  // The controls have told their names only after the first drawing.
  useEffect(() => { if (errors.length) again(); }, [errors]);
  const violations = {};
  for (const { pointer = "", message } of errors) {
    const known = [...names.current];
    const around = known.filter((name) => `${pointer}/`.startsWith(`${pointerOf(name)}/`)).sort((one, other) => other.length - one.length);
    // What is missing as a whole is told at the first control of it.
    const name = around[0] ?? known.find((one) => pointerOf(one).startsWith(`${pointer}/`)) ?? "";
    (violations[name] ??= []).push(message);
  }
  const change = (name, value) => onChange(written(values, name, value));
  return html`<${Context.Provider} value=${{ values, change, schema, violations, error: { violations: errors }, names: names.current }}>
    ${violations[""] && html`<ul class="fault-text">${violations[""].map((text) => html`<li>${text}</li>`)}</ul>`}
    ${children}
  </${Context.Provider}>`;
}

/** What is wrong, above the form: everything that no control shows, or a failure that is not about the input. */
function Summary({ error, violations, told }) {
  if (!told && !error.violations.length && error.status !== 409 && error.status !== 422) return html`<${Failed} error=${error} />`;
  return html`<div class="notice fault" role="alert" tabindex="-1">
    <p><strong>${told?.text ?? error.message}</strong></p>
    ${violations[""] && html`<ul>${violations[""].map((text) => html`<li>${text}</li>`)}</ul>`}
    ${told?.help}
    <details class="muted"><summary>${t("Details")}</summary><code>${error.code}</code>${error.requestId && html` · ${t("request")} <code>${error.requestId}</code>`}</details>
  </div>`;
}

/** The values of a form without texts, lists and members that are empty. */
export function withoutEmpty(values) {
  const pairs = Object.entries(values).map(([name, value]) => {
    const isObject = value && typeof value === "object" && !Array.isArray(value);
    return [name, isObject ? withoutEmpty(value) : value];
  });
  return Object.fromEntries(pairs.filter(([, value]) => {
    if (value === "" || value === undefined) return false;
    return !(value && typeof value === "object" && Object.keys(value).length === 0);
  }));
}

/** The values of the form around, and how to change one: `[values, change(name, value)]`. */
export function useForm() {
  const { values, change } = useContext(Context);
  return [values, change];
}

/** The faults of a control that draws them itself, and of what is in it: `[{ pointer, code, message, line, column }]`. */
export function useFaults(name) {
  const { error, changed, names } = useContext(Context);
  useEffect(() => {
    names.add(name);
    return () => names.delete(name);
  }, [name]);
  const place = pointerOf(name);
  if (changed?.includes(name)) return [];
  return (error?.violations ?? []).filter(({ pointer }) => pointer === place || pointer?.startsWith(`${place}/`));
}

/**
 * One control with its label, help and faults.
 *
 * `name` is the member of the body, dotted for nested ones. `kind`: text, textarea, select, checkbox, number, datetime,
 * list (items by comma or line), json, or an input type. `options`: `[[value, label]]`; a select without them offers
 * what the schema names.
 */
export function Field({ name, label, help: more, kind = "text", options, rows = 4, optional, ...rest }) {
  const { values, change, schema, violations, names } = useContext(Context);
  const id = useId();
  useEffect(() => {
    names.add(name);
    return () => names.delete(name);
  }, [name]);
  const described = schema[name] ?? {};
  const help = kind === "datetime" ? [more, t("By the clock of the workspace ({zone}).", { zone: zone() })].filter(Boolean).join(" ") : more;
  const faults = violations[name];
  const [jsonFault, setJsonFault] = useState(null);
  const notes = [help && `${id}-help`, (faults || jsonFault) && `${id}-fault`].filter(Boolean).join(" ");
  const common = {
    id, name, "aria-describedby": notes || undefined, "aria-invalid": faults || jsonFault ? "true" : undefined,
    maxlength: described.maxLength, min: described.minimum, max: described.maximum, ...rest,
  };
  const value = read(values, name);
  const onInput = (event) => change(name, event.target.value);
  const control = () => {
    switch (kind) {
      case "textarea":
        return html`<textarea ...${common} rows=${rows} value=${value ?? ""} onInput=${onInput}></textarea>`;
      case "select": {
        const choices = options ?? (described.enum ?? []).map((word) => [word, t(words(word))]);
        return html`<select ...${common} value=${value ?? ""} onChange=${onInput}>
          ${(optional || value === undefined || value === "" || value === null) && html`<option value="">–</option>`}
          ${choices.map(([word, text]) => html`<option value=${word} selected=${word === value}>${text}</option>`)}</select>`;
      }
      case "checkbox":
        return html`<input ...${common} type="checkbox" checked=${Boolean(value)} onChange=${(event) => change(name, event.target.checked)} />`;
      case "number":
        return html`<input ...${common} type="number" value=${value ?? ""}
          onInput=${(event) => change(name, event.target.value === "" ? undefined : Number(event.target.value))} />`;
      case "datetime":
        return html`<input ...${common} type="datetime-local" value=${value ? wallOf(value) : ""}
          onInput=${(event) => change(name, event.target.value ? momentOf(event.target.value).toISOString() : undefined)} />`;
      case "list":
        return html`<${ItemsInput} common=${{ ...common, maxlength: undefined }} value=${value} rows=${rows} onItems=${(items) => change(name, items)} />`;
      case "json":
        return html`<${JsonInput} common=${common} value=${value} rows=${rows} onFault=${setJsonFault} onValue=${(parsed) => change(name, parsed)} />`;
      default:
        return html`<input ...${common} type=${kind} value=${value ?? ""} onInput=${onInput} />`;
    }
  };
  const texts = html`
    ${help && html`<p class="help" id="${id}-help">${help}</p>`}
    ${(faults || jsonFault) && html`<p class="fault-text" id="${id}-fault">${[...(faults ?? []), ...(jsonFault ? [jsonFault] : [])].join(" ")}</p>`}`;
  if (kind === "checkbox") {
    return html`<div class="field check"><label for=${id}>${control()} <span>${label}</span></label>${texts}</div>`;
  }
  // A choice that is made already needs no word about it.
  const needed = ((described.required || rest.required) && !optional) || (kind === "select" && value);
  return html`<div class="field"><label for=${id}>${label}${!needed && described.type && html` <span class="muted">${t("optional")}</span>`}</label>
    ${control()}${texts}</div>`;
}

// What is typed stays as it is; only its items go to the form.
function ItemsInput({ common, value, rows, onItems }) {
  const [text, setText] = useState((value ?? []).join(", "));
  const onInput = (event) => {
    setText(event.target.value);
    onItems(event.target.value.split(/[,\n]/).map((item) => item.trim()).filter(Boolean));
  };
  return rows > 1 && String(text).length > 60
    ? html`<textarea ...${common} rows=${rows} value=${text} onInput=${onInput}></textarea>`
    : html`<input ...${common} value=${text} onInput=${onInput} />`;
}

function JsonInput({ common, value, rows, onFault, onValue }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const tell = (control, fault) => {
    control.setCustomValidity(fault ?? "");
    onFault(fault);
  };
  const onInput = ({ target }) => {
    setText(target.value);
    try {
      onValue(target.value.trim() ? JSON.parse(target.value) : undefined);
      tell(target, null);
    } catch (error) {
      tell(target, t("Not JSON yet: {message}", { message: error.message }));
    }
  };
  return html`<textarea ...${common} class="mono" rows=${rows} spellcheck=${false} value=${text} onInput=${onInput}></textarea>`;
}
