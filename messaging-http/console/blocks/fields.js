// Controls for the attributes of a block.
import { html, t, useEffect, useId, useRef, useState } from "../lib/ui.js";
import { ValuePicker } from "./picker.js";

const HEX = /^#[0-9a-fA-F]{6}$/;

function sixDigits(value) {
  const short = /^#([0-9a-fA-F])([0-9a-fA-F])([0-9a-fA-F])$/.exec(value ?? "");
  const long = short ? `#${short.slice(1).map((digit) => digit + digit).join("")}` : value;
  return HEX.test(long ?? "") ? long.toLowerCase() : null;
}

/** A colour, as a text and as a choice. */
export function ColorInput({ label, value, usual, onChange, focused }) {
  const id = useId();
  const field = useRef();
  useEffect(() => { if (focused) field.current.focus(); }, []);
  return html`<div class="field"><label for=${id}>${label}</label>
    <div class="color-field"><input ref=${field} id=${id} class="mono" value=${value ?? ""} autocomplete="off" placeholder=${usual ?? "#1a1f2b"} onInput=${(event) => onChange(event.target.value)} />
      <input type="color" aria-label=${t("{label}: choose", { label })} value=${sixDigits(value || usual) ?? "#ffffff"} onInput=${(event) => onChange(event.target.value)} /></div></div>`;
}

/** One of a few values, or none. */
export function ChoiceInput({ label, value, options, onChange }) {
  const id = useId();
  const isKnown = !value || options.some(([one]) => one === value);
  return html`<div class="field"><label for=${id}>${label}</label>
    <select id=${id} value=${value ?? ""} onChange=${(event) => onChange(event.target.value)}>
      <option value="" selected=${!value}>${t("As usual")}</option>
      ${options.map(([one, text]) => html`<option value=${one} selected=${one === value}>${t(text)}</option>`)}
      ${!isKnown && html`<option value=${value} selected>${value}</option>`}</select></div>`;
}

/** A text; with `picks`, values can be inserted where the cursor is. */
export function TextInput({ label, value, onChange, help, picks, placeholder, mono, multiline, rows = 3, invalid }) {
  const id = useId();
  const field = useRef();
  const [picking, setPicking] = useState(false);
  const insert = (tag) => {
    const { selectionStart: from, selectionEnd: to } = field.current;
    const text = value ?? "";
    onChange(text.slice(0, from ?? text.length) + tag + text.slice(to ?? text.length));
    setPicking(false);
    field.current.focus();
  };
  const common = {
    id, ref: field, value: value ?? "", placeholder, dir: mono ? "ltr" : "auto", autocomplete: "off", class: mono ? "mono" : "", spellcheck: mono ? false : undefined,
    "aria-describedby": help ? `${id}-help` : undefined, "aria-invalid": invalid ? "true" : undefined, onInput: (event) => onChange(event.target.value),
  };
  return html`<div class="field"><label for=${id}>${label}</label>
    <div class=${picks ? "value-field" : ""}>${multiline ? html`<textarea ...${common} rows=${rows}></textarea>` : html`<input ...${common} />`}
      ${picks && html`<button type="button" class="small" aria-expanded=${picking} aria-label=${t("{label}: insert a value", { label })} title=${t("Insert a value")}
        onClick=${() => setPicking(!picking)}><span aria-hidden="true">{ }</span></button>`}</div>
    ${picking && html`<${ValuePicker} onChoose=${insert} onClose=${() => { setPicking(false); field.current.focus(); }} />`}
    ${help && html`<p class=${invalid ? "fault-text" : "help"} id="${id}-help">${help}</p>`}</div>`;
}

/** The control of a setting: an attribute of an element. `usual` is what it is where nothing is said. */
export function Setting({ setting, value, usual, onChange }) {
  const { kind, label } = setting;
  const placeholder = usual ?? setting.placeholder;
  const change = (text) => onChange(text === "" ? undefined : text);
  if (kind === "color") return html`<${ColorInput} label=${t(label)} value=${value} usual=${usual} onChange=${change} />`;
  if (kind === "choice") return html`<${ChoiceInput} label=${t(label)} value=${value} options=${setting.options} onChange=${change} />`;
  return html`<${TextInput} label=${t(label)} value=${value} placeholder=${placeholder} onChange=${change} picks=${kind === "value"} mono=${kind === "value"} />`;
}
