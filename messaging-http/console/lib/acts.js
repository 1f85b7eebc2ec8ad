// What can be done with chosen rows, by the operation that lists them. What may be done with each of them, the server decides.
import { call } from "./api.js";
import { confirm, dialog, html, t, useCall, useRef, useState } from "./ui.js";
import { AttributeFields, fromForm, kindsOf } from "./attributes.js";
import { addressFor, CHANNELS, REASONS } from "./contacts.js";
import { Field, Fields } from "./form.js";

const choices = (pairs) => pairs.map(([value, text]) => [value, t(text)]);

// ---- asking ----

// Before what cannot be undone: the effect, and the number typed.
const sure = (title, text, action) => (counted, rows) => confirm({
  title: t(title, { rows: counted }), text: t(text), action: t(action), name: String(rows.length), back: t("Go back"),
});

// What is to be done with them; `Draw` draws the controls. Answers their values.
const asked = (title, Draw, initial = {}) => (counted) => {
  const words = t(title, { rows: counted });
  return dialog((close) => html`<${Ask} Draw=${Draw} initial=${initial} action=${words} close=${close} />`, { title: words });
};

function Ask({ Draw, initial, action, close }) {
  const [values, setValues] = useState(initial);
  // What the controls know beside their values.
  const { current: about } = useRef({});
  return html`<form class="form" onSubmit=${(event) => { event.preventDefault(); close({ ...values, ...about }); }}>
    <${Fields} values=${values} onChange=${setValues}><${Draw} about=${about} /></${Fields}>
    <div class="actions"><button type="submit" class="primary">${action}</button>
      <button type="button" onClick=${() => close()}>${t("Cancel")}</button></div></form>`;
}

function Tag() {
  return html`
    <${Field} name="mode" label=${t("What to do")} kind="select" options=${[["add", t("Add")], ["remove", t("Remove")]]} autofocus />
    <${Field} name="tags" label=${t("Tags")} kind="list" rows=${1} help=${t("Separated by commas")} dir="auto" autocomplete="off" required />`;
}

function Attributes({ about }) {
  const fields = useCall("listCustomFields", { query: { limit: 200 } }, { quiet: true }).data?.data ?? [];
  const [added, setAdded] = useState({});
  about.kinds = { ...added, ...kindsOf({}, fields) };
  return html`<p class="help">${t("What you leave empty stays as it is.")}</p>
    <${AttributeFields} fields=${fields} kinds=${about.kinds} onKind=${(key, kind) => setAdded({ ...added, [key]: kind })} />`;
}

function ChosenList() {
  const lists = useCall("listLists", { query: { limit: 200 } }, { quiet: true }).data?.data ?? [];
  return html`<${Field} name="list" label=${t("List")} kind="select" options=${lists.map(({ id, name }) => [id, name])} required autofocus />`;
}

function Suppression() {
  return html`
    <${Field} name="channel" label=${t("Channel")} kind="select" options=${choices(CHANNELS)} autofocus />
    <${Field} name="reason" label=${t("Reason")} kind="select" options=${choices(REASONS)} />
    <p class="help">${t("From now on nothing is sent to these addresses; with the reason Unsubscribe, only marketing is held back.")}</p>`;
}

// ---- contacts ----

// Contacts are changed by their ids: an operation that finds them by an address would make those anew who were erased since.
async function tag([{ id }], { key, input: { mode, tags: wanted }, quiet }) {
  const { tags } = await call("getContact", { path: { id }, quiet: true });
  const next = mode === "add" ? [...new Set([...tags, ...wanted])] : tags.filter((one) => !wanted.includes(one));
  if (next.length !== tags.length) await call("updateContact", { path: { id }, body: { tags: next }, key, quiet });
}

// What the server does not take of a group is left out, and the rest is asked for again.
async function addToList(rows, { key, input, quiet }) {
  const refused = [];
  for (let rest = rows, round = 0; rest.length; round += 1) {
    try {
      await call("addListContacts", { path: { id: input.list }, body: { contact_ids: rest.map(({ id }) => id) }, key: `${key}-${round}`, quiet });
      break;
    } catch (error) {
      const wrong = new Map((error.violations ?? []).map(({ pointer, message }) => [rest[/^\/contact_ids\/(\d+)$/.exec(pointer)?.[1]], { message }]));
      wrong.delete(undefined);
      if (!wrong.size) throw error;
      refused.push(...[...wrong].map(([row, fault]) => ({ row, error: fault })));
      rest = rest.filter((row) => !wrong.has(row));
    }
  }
  return refused;
}

function suppress([row], { key, input: { channel, reason }, quiet }) {
  const address = addressFor(row, channel);
  if (typeof address !== "string") throw new Error(t("There is no address for this channel."));
  return call("createSuppression", { body: { channel, address, reason }, key, quiet }).then(() => []);
}

// A call for each row; `path` makes its path of the row and the arguments of the list.
const each = (id, path = ({ id: one }) => ({ id: one }), body) => async ([row], { key, input, args, quiet }) => {
  await call(id, { path: path(row, args, input), body: body?.(input), key, quiet });
};

const OF_CONTACTS = [
  { label: "Tags", id: "updateContact", ask: asked("Change the tags of {rows}", Tag, { mode: "add" }), run: tag },
  { label: "Attributes", id: "updateContact", ask: asked("Set attributes of {rows}", Attributes),
    run: each("updateContact", undefined, ({ attributes, kinds }) => ({ attributes: fromForm(attributes ?? {}, kinds) })) },
  { label: "Add to list", id: "addListContacts", ask: asked("Add {rows} to a list", ChosenList), size: 1000, run: addToList },
  { label: "Remove from list", id: "removeListContact", ask: asked("Remove {rows} from a list", ChosenList),
    run: each("removeListContact", ({ id }, args, { list }) => ({ id: list, contact_id: id })) },
  { label: "Suppress", id: "createSuppression", ask: asked("Suppress {rows}", Suppression, { channel: "email", reason: "manual" }), run: suppress },
  { label: "Erase", id: "deleteContact", run: each("deleteContact"),
    ask: sure("Erase {rows}?", "Everything that is kept about these people goes, and cannot be brought back: attributes, events, automation runs, and address and content of their messages. Suppressions stay.", "Erase") },
];

const deleted = (id, text) => [{ label: "Delete", id, run: each(id), ask: sure("Delete {rows}?", text, "Delete") }];

const ACTS = {
  listContacts: OF_CONTACTS,
  listSegmentContacts: OF_CONTACTS,
  listListContacts: [
    { label: "Remove from this list", id: "removeListContact", run: each("removeListContact", ({ id }, { path }) => ({ id: path.id, contact_id: id })),
      ask: (counted) => confirm({ title: t("Remove {rows} from this list?", { rows: counted }), text: t("They stay as contacts."), action: t("Remove") }) },
    ...OF_CONTACTS.filter(({ id }) => id !== "removeListContact"),
  ],
  listMessages: [{ label: "Cancel sending", id: "cancelMessage", run: each("cancelMessage", (row) => ({ id: row.message_id })),
    ask: sure("Cancel {rows}?", "What still waits is not sent, and nobody can change that afterwards. What has left already stays as it is.", "Cancel sending") }],
  listSuppressions: [{ label: "Take off the list", id: "deleteSuppression", run: each("deleteSuppression"),
    ask: sure("Take {rows} off the list?", "Messages to these addresses are sent again. Those that still do not exist bounce again, and people who complained may complain again: both harm all your mail.", "Take off the list") }],
  listTemplates: deleted("deleteTemplate", "Their texts and all their versions are gone for good. Templates that campaigns or automations use are not deleted."),
  listCampaigns: deleted("deleteCampaign", "They are gone for good. Only drafts and cancelled campaigns are deleted."),
  listDeliveries: [{ label: "Replay", id: "replayDelivery", run: each("replayDelivery", ({ id }) => ({ delivery_id: id })),
    ask: (counted) => confirm({ title: t("Replay {rows}?", { rows: counted }), text: t("Each is sent to the webhook once more."), action: t("Replay") }) }],
  listAutomationRuns: [{ label: "End runs", id: "exitAutomationRun", run: each("exitAutomationRun", ({ id }, { path }) => ({ id: path.id, run_id: id })),
    ask: sure("End {rows}?", "These contacts go no further through the steps.", "End runs") }],
};

/** The acts for rows of what an operation lists: `{ label, id, ask(counted, rows), run(group, about), size }`. */
export function acts(id) {
  return ACTS[id] ?? [];
}
