// The second factor of whoever is signed in: adding one with an app, recovery codes, removing one.
import { call, loadSession, me } from "../lib/api.js";
import { Action, absolute, announce, Code, Copy, count, html, Loaded, t, Time, useCall, useState } from "../lib/ui.js";
import { Field, Form, withoutEmpty } from "../lib/form.js";
import { useFirstFocus, useFocusBack } from "../lib/focus.js";
import { Table } from "../lib/table.js";
import { hasPasskeys, makePasskey, refusalOf } from "../lib/passkey.js";
import { qr } from "../lib/qr.js";

export function SecondFactor() {
  const found = useCall("listFactors", { query: { limit: 50 } });
  // What is open: a new factor, its recovery codes, or the question for a proof.
  const [open, setOpen] = useState(null);
  const { second_factor: has, recovery_codes_left: left, workspaces } = me();
  const demanding = workspaces.filter((one) => one.require_second_factor);
  const reload = async () => {
    await loadSession();
    found.reload();
  };
  const show = (next) => async (answer) => {
    await reload();
    setOpen(next?.(answer) ?? null);
  };
  // What nobody confirmed is of no use to anybody.
  const giveUp = async () => {
    await call("deleteFactor", { path: { id: open.made.id }, body: {}, quiet: true }).catch(() => {});
    await show()();
  };
  const codesOf = ({ recovery_codes: codes }) => codes && { codes };
  return html`<section class="stack" aria-labelledby="second-factor"><h2 id="second-factor">${t("Second factor")}</h2>
    <p class="muted">${has
      ? t("Whoever signs in as you needs one as well, by a link too.")
      : t("With one, your password or a link alone opens nothing: whoever signs in as you needs a code of an app on your phone, or a passkey, as well.")}</p>
    ${!has && demanding.length > 0 && html`<p class="notice warning">${t("{names} demands one: until you add it, you reach nothing there.", { names: demanding.map(({ name }) => name).join(", ") })}</p>`}
    <${Loaded} of=${found}>${({ data }) => data.length > 0 && html`<${Table} caption=${t("Second factors")} rows=${data} columns=${[
      { label: t("Name"), cell: (row) => html`<bdi>${row.name}</bdi>` },
      { label: t("Kind"), cell: (row) => (row.kind === "passkey" ? t("passkey") : t("app")) },
      { label: t("In use since"), cell: (row) => (row.confirmed_at ? html`<${Time} at=${row.confirmed_at} />` : html`<span class="muted">${t("not confirmed")}</span>`) },
      { label: t("Last used"), cell: (row) => row.last_used_at && html`<${Time} at=${row.last_used_at} />` },
    ]} actions=${(row) => (row.confirmed_at
      ? html`<button type="button" class="small" onClick=${() => setOpen({ removes: row })}>${t("Remove")}<span class="sr"> ${row.name}</span></button>`
      : html`<${Action} id="deleteFactor" className="small" args=${{ path: { id: row.id }, body: {} }} onDone=${reload} done=${t("Removed")}>${t("Remove")}<span class="sr"> ${row.name}</span></${Action}>`)} />`}</${Loaded}>
    ${has && html`<p class=${left < 3 ? "notice warning" : "muted"}>${t("{number} left.", { number: count(left, "recovery code", "recovery codes") })}</p>`}
    ${open?.codes && html`<${RecoveryCodes} codes=${open.codes} onClose=${() => setOpen(null)} />`}
    ${open?.adds && html`<${NewFactor} kind=${open.adds} onMade=${(made) => setOpen({ made })} onClose=${() => setOpen(null)} />`}
    ${open?.made?.kind === "passkey" && html`<${NewPasskey} made=${open.made} onDone=${show(codesOf)} onClose=${giveUp} />`}
    ${open?.made?.kind === "totp" && html`<${Enrolment} made=${open.made} onDone=${show(codesOf)} onClose=${giveUp} />`}
    ${open?.removes && html`<${Proof} key=${open.removes.id} id="deleteFactor" path=${{ id: open.removes.id }} title=${t("Remove {name}", { name: open.removes.name })}
      submit=${t("Remove")} done=${t("Removed")} danger onDone=${show()} onClose=${() => setOpen(null)} />`}
    ${open?.renews && html`<${Proof} id="createRecoveryCodes" title=${t("New recovery codes")} submit=${t("Make ten new codes")} done=${t("The older codes have ended.")}
      onDone=${show(codesOf)} onClose=${() => setOpen(null)} />`}
    ${!open && html`<div class="actions"><button type="button" class=${has ? "" : "primary"} onClick=${() => setOpen({ adds: "totp" })}>${t("Add an app")}</button>
      ${hasPasskeys() && html`<button type="button" onClick=${() => setOpen({ adds: "passkey" })}>${t("Add a passkey")}</button>`}
      ${has && html`<button type="button" onClick=${() => setOpen({ renews: true })}>${t("New recovery codes")}</button>`}</div>`}
  </section>`;
}

function NewFactor({ kind, onMade, onClose }) {
  const part = useFirstFocus();
  useFocusBack();
  return html`<section ref=${part} class="card" aria-labelledby="new-factor"><h3 id="new-factor">${kind === "totp" ? t("An app that shows codes") : t("A passkey of this device or a security key")}</h3>
    <${Form} id="createFactor" initial=${{ kind, name: "" }} submit=${t("Go on")} onDone=${onMade} refusal=${wrongProof}
      extra=${html`<button type="button" onClick=${onClose}>${t("Cancel")}</button>`}>
      <${Field} name="name" label=${t("Name")} autocomplete="off" dir="auto" placeholder=${t("My phone")} help=${t("Where it is, so that you know which one you lost.")} />
      ${me().second_factor && html`<${ProofFields} help=${t("Of a factor that you have, or a recovery code. Not needed in the first 15 minutes after you signed in.")} />`}
    </${Form}></section>`;
}

// The device is asked at once, and again where that was given up.
function NewPasskey({ made, onDone, onClose }) {
  const part = useFirstFocus("button");
  useFocusBack();
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  const make = async () => {
    // A browser asks one thing at a time.
    if (busy) return;
    setBusy(true);
    setFault(null);
    try {
      const credential = await makePasskey(made.options);
      const answer = await call("confirmFactor", { path: { id: made.id }, body: { credential }, quiet: true });
      announce(t("It is asked for from now on."));
      onDone(answer);
    } catch (error) {
      const said = refusalOf(error, t("No passkey was made.")) ?? (error.violations?.map(({ message }) => message).join(" ") || error.message);
      setFault(said);
      announce(said, { fault: true });
    } finally {
      setBusy(false);
    }
  };
  return html`<section ref=${part} class="card" aria-labelledby="new-passkey" aria-busy=${busy ? "true" : undefined}><h3 id="new-passkey">${t("Make the passkey")}</h3>
    <p>${t("The browser asks for your fingerprint, your face, a PIN or a security key. A passkey signs in without a password, too.")}</p>
    ${fault && html`<p class="notice fault" role="alert">${fault}</p>`}
    <div class="actions"><button type="button" class="primary" onClick=${make}>${fault ? t("Try again") : t("Go on")}</button>
      <button type="button" onClick=${onClose}>${t("Cancel")}</button></div></section>`;
}

function Enrolment({ made, onDone, onClose }) {
  const part = useFirstFocus();
  useFocusBack();
  return html`<section ref=${part} class="card" aria-labelledby="enrolment"><h3 id="enrolment">${t("Scan this with the app")}</h3>
    <div class="stack"><${Picture} text=${made.uri} />
      <details><summary>${t("It cannot be scanned?")}</summary>
        <p>${t("Type this key into the app, as one that is based on time:")}</p>
        <p><code>${grouped(made.secret)}</code> <${Copy} text=${made.secret} label=${html`${t("Copy")}<span class="sr"> ${t("key")}</span>`} /></p>
        <p><a href=${made.uri}>${t("Open the app on this device")}</a></p></details></div>
    <${Form} id="confirmFactor" path=${{ id: made.id }} body=${({ code = "" }) => ({ code })} submit=${t("Confirm")} done=${t("It is asked for from now on.")} onDone=${onDone}
      refusal=${({ status }) => status === 422 && { text: t("The code was not taken.") }}
      extra=${html`<button type="button" onClick=${onClose}>${t("Cancel")}</button>`}>
      <${Field} name="code" label=${t("Code")} autocomplete="one-time-code" inputmode="numeric"
        help=${t("The six digits that the app shows now. Until {time}.", { time: absolute(made.expires_at) })} />
    </${Form}></section>`;
}

const QUIET_ZONE = 4;

// Drawn as a path, because the page takes no pictures that are not files of the server.
function Picture({ text }) {
  const rows = qr(text);
  if (!rows) return null;
  const side = rows.length + 2 * QUIET_ZONE;
  const squares = rows.flatMap((line, row) => line.map((dark, column) => (dark ? `M${column + QUIET_ZONE} ${row + QUIET_ZONE}h1v1h-1z` : "")));
  return html`<svg class="qr" viewBox="0 0 ${side} ${side}" role="img" aria-label=${t("QR code of the key")} shape-rendering="crispEdges">
    <rect width=${side} height=${side} fill="#fff" /><path d=${squares.join("")} fill="#000" /></svg>`;
}

function grouped(secret) {
  return secret.replace(/(.{4})(?=.)/g, "$1 ");
}

function RecoveryCodes({ codes, onClose }) {
  const part = useFirstFocus("button");
  useFocusBack();
  const text = codes.join("\n");
  return html`<section ref=${part} class="notice good" aria-labelledby="recovery-codes"><h3 id="recovery-codes">${t("Keep these recovery codes")}</h3>
    <p>${t("Each signs you in once without the app or the passkey. They are shown only now; keep them where you find them without your phone.")}</p>
    <${Code} text=${text} label=${t("Recovery codes")} />
    <div class="actions"><button type="button" onClick=${onClose}>${t("I have kept them")}</button></div></section>`;
}

function refusalOfProof(refusal) {
  return wrongProof(refusal) || refusal.status === 422 && { text: me().has_password ? t("A code or your password is needed.") : t("A code is needed.") };
}

// A code or the password, so that nobody who finds an open session does it.
function Proof({ title, onClose, ...form }) {
  const part = useFirstFocus();
  useFocusBack();
  return html`<section ref=${part} class="card" aria-labelledby="proof"><h3 id="proof">${title}</h3>
    <${Form} ...${form} body=${withoutEmpty} refusal=${refusalOfProof}
      extra=${html`<button type="button" onClick=${onClose}>${t("Cancel")}</button>`}>
      <${ProofFields} help=${t("The six digits that the app shows, or a recovery code.")} />
    </${Form}></section>`;
}

function ProofFields({ help }) {
  return html`<${Field} name="code" label=${t("Code")} autocomplete="one-time-code" help=${help} />
    ${me().has_password && html`<${Field} name="password" kind="password" label=${t("or your password")} autocomplete="current-password" />`}`;
}

function wrongProof({ code }) {
  return code === "invalid_credentials" && { text: t("The code or password is wrong, or the code was used already.") };
}
