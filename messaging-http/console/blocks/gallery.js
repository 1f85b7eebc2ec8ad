// Templates to begin with: each is a file of MJML beside its name, subject and preview text.
import { html, Loading, Failed, t, useEffect, useState } from "../lib/ui.js";
import { Field, Form, useForm } from "../lib/form.js";
import { parse } from "./mjml.js";
import { asExample, defaultsOf, isShown, kindOf } from "./kinds.js";
import { at, isHolder, places } from "./tree.js";
import { Drawing } from "./drawing.js";
import { useSheet } from "./sheet.js";

const FOLDER = new URL("../gallery/", import.meta.url);

async function fetched(name) {
  const answer = await fetch(new URL(name, FOLDER));
  if (!answer.ok) throw new Error(`${name}: status ${answer.status}`);
  return answer;
}

// All of the gallery, asked for once.
let asked;

/** The templates of the gallery: `[{ id, name, about, subject, preheader, mjml }]`. */
export function gallery() {
  asked ??= fetched("gallery.json").then((answer) => answer.json())
    .then((list) => Promise.all(list.map(async (one) => ({ ...one, mjml: await (await fetched(`${one.id}.mjml`)).text() }))));
  asked.catch(() => { asked = undefined; });
  return asked;
}

/** A form that makes a template of one that is chosen; `extra` stands beside its button. */
export default function Gallery({ onDone, extra }) {
  useSheet();
  const [list, setList] = useState(null);
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    gallery().then(setList, (error) => setFailure({ status: 0, code: "unreachable", message: error.message }));
  }, []);
  if (failure) return html`<${Failed} error=${failure} />`;
  if (!list) return html`<${Loading} lines=${6} />`;
  const body = ({ chosen, name }) => {
    const { subject, preheader, mjml } = list.find(({ id }) => id === chosen);
    return { name, channel: "email", subject, preheader, mjml };
  };
  return html`<${Form} id="createTemplate" submit=${t("Create")} extra=${extra} wide initial=${{ chosen: list[0].id, name: list[0].name }} body=${body} onDone=${onDone}>
    <${Choices} list=${list} />
    <${Field} name="name" label=${t("Name")} help=${t("For you and your colleagues; recipients never see it.")} />
  </${Form}>`;
}

function Choices({ list }) {
  const [values, change] = useForm();
  const choose = (one) => {
    // A name of one's own stays.
    if (list.some(({ name }) => name === values.name) || !values.name) change("name", one.name);
    change("chosen", one.id);
  };
  return html`<fieldset class="gallery"><legend>${t("Begin with")}</legend>
    <div class="gallery-list">${list.map((one) => html`<label key=${one.id} class="gallery-one">
      <span class="gallery-look" aria-hidden="true"><${Look} mjml=${one.mjml} /></span>
      <span class="gallery-name"><input type="radio" name="gallery" value=${one.id} checked=${one.id === values.chosen} onChange=${() => choose(one)} /> <strong>${t(one.name)}</strong></span>
      <span class="muted">${t(one.about)}</span>
    </label>`)}</div></fieldset>`;
}

const MOST_SHOWN = 9;

// What it looks like, small and roughly.
function Look({ mjml }) {
  const { before, body } = parse(asExample(mjml));
  const defaults = defaultsOf(before);
  const shown = places(body).map((place) => at(body, place)).filter((node) => !isHolder(node) && isShown(node) && kindOf(node) !== "spacer");
  return shown.slice(0, MOST_SHOWN).map((node, nth) => html`<${Drawing} key=${nth} node=${node} defaults=${defaults} />`);
}
