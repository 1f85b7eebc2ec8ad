// One sending domain: its records and what is wrong with them, its signing keys, tracking, removal.
import { Table } from "../lib/table.js";
import { allowed, call } from "../lib/api.js";
import {
  Action, announce, Badge, confirm, count, Head, html, Loaded, Progress, t, Time, useCall, useEffect, useState,
} from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { go, href } from "../lib/route.js";
import { foundOf, isUnnamed, Records, recordsOf } from "./domain_records.js";

// How often the records are looked at again while somebody waits for them.
const AGAIN_SECONDS = 20;

export default function Domain({ id }) {
  const domain = useCall("getSendingDomain", { path: { id } });
  const wanted = useCall("listSendingDomainRecords", { path: { id } });
  // What a write answered takes the place of what was loaded.
  const [answer, setAnswer] = useState(null);
  const shown = answer ?? domain.data;
  const changed = (next) => {
    setAnswer(next);
    wanted.reload();
  };
  const title = shown?.domain ?? t("Domain");
  return html`
    <${Head} title=${title} back=${href("domains")} backText=${t("Domains")} badge=${shown && html`<${Badge} status=${shown.status} />`} />
    <${Loaded} of=${{ ...domain, data: shown }}>${(one) => html`
      <${Loaded} of=${wanted}>${(page) => html`<${State} domain=${one} records=${recordsOf(one, page.data)} onChange=${changed} />`}</${Loaded}>
      <${Keys} domain=${one} onChange=${changed} />
      <${Tracking} domain=${one} onChange=${changed} />
      <${Removal} domain=${one} />`}</${Loaded}>`;
}

function State({ domain, records, onChange }) {
  const there = foundOf(records);
  const isComplete = there === records.length;
  return html`
    <section class="notice ${{ verified: "good", failed: "fault" }[domain.status] ?? "warning"}" aria-labelledby="state">
      <h2 id="state">${{
        verified: t("Mail can be sent from this domain"),
        failed: t("Mail from this domain is refused"),
      }[domain.status] ?? t("Mail cannot be sent from this domain yet")}</h2>
      <p>${told(domain, records)}</p>
      <p class="muted">${domain.last_checked_at ? html`${t("Last checked")} <${Time} at=${domain.last_checked_at} />. ${t("The records are checked again every day.")}` : t("Not checked yet.")}</p>
      <${Verify} domain=${domain} onChange=${onChange} />
    </section>
    <section class="stack" aria-labelledby="records"><h2 id="records">${t("DNS records")}</h2>
      <p>${t("{there} of {all} records found", { there, all: records.length })}</p>
      ${!isComplete && html`<${Progress} value=${there} max=${records.length} label=${t("Records found")} />`}
      <${Records} records=${records} domain=${domain.domain} /></section>`;
}

function told({ status }, records) {
  const wrong = records.filter((record) => record.status === "failed").length;
  const lacking = records.filter((record) => record.status === "pending").length;
  if (status === "failed") return t("A record that is required was absent or wrong for 72 hours. Put it right and verify: mail goes on at once.");
  if (status === "verified") {
    if (!wrong && !lacking) return t("All its records are found.");
    if (wrong + lacking === records.filter(({ purpose, status: now }) => purpose === "dkim" && now !== "verified").length) {
      return t("Mail is signed with the keys whose records are found. Publish those of the others, so that they sign too.");
    }
    const some = records.some((record) => record.required && record.status !== "verified" && record.purpose !== "dkim");
    return some
      ? t("A record that is required has gone. If it stays away for 72 hours, mail is refused.")
      : t("The records that are required are found. The others make your mail more welcome.");
  }
  if (wrong) return t("{wrong} published, but not as shown: what is wrong stands with each.", { wrong: count(wrong, "record is", "records are") });
  if (isUnnamed(records)) return t("This server needs a name first; only then can the records below be published.");
  return t("Publish the records below, then verify. New records are often seen within minutes, at some providers within a day.");
}

// ---- verifying ----

function Verify({ domain, onChange }) {
  const [busy, setBusy] = useState(false);
  const [keepsOn, setKeepsOn] = useState(false);
  const [seconds, setSeconds] = useState(0);
  const verify = async () => {
    setBusy(true);
    try {
      const next = await call("verifySendingDomain", { path: { id: domain.id } });
      onChange(next);
      announce(next.status === "verified" ? t("{domain} is verified", { domain: next.domain }) : t("Checked. Something is still missing."));
      if (next.status === "verified") setKeepsOn(false);
    } catch (error) {
      setKeepsOn(false);
      announce(error.message, { fault: true });
    } finally {
      setBusy(false);
      setSeconds(AGAIN_SECONDS);
    }
  };
  useEffect(() => {
    if (!keepsOn || busy) return undefined;
    const timer = setTimeout(() => {
      if (document.visibilityState !== "visible") setSeconds((left) => (left === 1 ? 2 : left));
      else if (seconds > 1) setSeconds(seconds - 1);
      else verify();
    }, 1000);
    return () => clearTimeout(timer);
  }, [keepsOn, busy, seconds]);
  if (!allowed("verifySendingDomain")) return null;
  return html`<div class="actions">
    <button type="button" class=${domain.status === "verified" ? "" : "primary"} disabled=${busy} data-operation="verifySendingDomain" onClick=${verify}>
      ${busy ? t("Looking the records up") : t("Verify")}</button>
    ${domain.status !== "verified" && html`<button type="button" onClick=${() => { setKeepsOn(!keepsOn); setSeconds(AGAIN_SECONDS); }}>
      ${keepsOn ? t("Stop checking") : t("Keep checking")}</button>`}
    ${keepsOn && !busy && html`<span class="muted">${t("again in {seconds} s", { seconds })}</span>`}
  </div>`;
}

// ---- signing keys ----

/** What each key does: keys stand in the order in which they were made; of each kind the newest that is found signs. */
function stagesOf(keys) {
  const kindOf = ({ record }) => /k=(\w+)/.exec(record)?.[1] ?? "rsa";
  return keys.map((key, at) => {
    const same = keys.filter((other) => kindOf(other) === kindOf(key));
    const signs = same.findLast(({ status }) => status === "verified");
    const isReplaced = signs && keys.indexOf(signs) > at;
    const stage = signs === key ? "signs" : isReplaced ? "replaced" : "new";
    return { ...key, kind: kindOf(key), stage, hasOlder: Boolean(signs) };
  });
}

const STAGES = {
  signs: ["good", "Signs mail", "Keep its record."],
  replaced: ["off", "Replaced", "Keep its record until it is gone from this list, a week after the new one was found: mail under way is still checked with it."],
  new: ["wait", "New", "Publish its record."],
};

function Keys({ domain, onChange }) {
  const keys = stagesOf(domain.dkim);
  const isRotating = keys.some(({ stage, hasOlder }) => stage === "replaced" || (stage === "new" && hasOlder));
  const rotate = () => confirm({
    title: t("Make new signing keys?"), action: t("Make new keys"),
    text: t("{number} to publish. The keys of now go on signing until the new ones are found, so mail is never unsigned.", { number: count(2, "new record", "new records") }),
  });
  return html`<section class="stack" aria-labelledby="keys"><h2 id="keys">${t("Signing keys")}</h2>
    <p class="muted">${t("Change the keys once a year or so, and when somebody may have seen them.")}</p>
    <${Table} caption=${t("Signing keys")} rows=${keys} rowKey=${({ selector }) => selector} columns=${[
      { label: t("Name"), cell: ({ selector }) => html`<code>${selector}</code>` },
      { label: t("Kind"), cell: ({ kind }) => html`<span class="nowrap">${{ rsa: "RSA", ed25519: "Ed25519" }[kind] ?? kind}</span>` },
      { label: t("Stage"), cell: ({ stage }) => html`<${Badge} status=${{ signs: "active", new: "pending" }[stage]}>${t(STAGES[stage][1])}</${Badge}>` },
      { label: t("What to do"), wide: true, cell: ({ stage }) => t(STAGES[stage][2]) },
    ]} />
    ${isRotating && html`<ol class="steps">
      ${rotationOf(keys).map(([text, done], nth) => html`<li class=${done ? "done" : ""}><span class="step-sign" aria-hidden="true">${done ? "✓" : nth + 1}</span>
        <p>${text}${done && html`<span class="sr"> ${t("(done)")}</span>`}</p></li>`)}</ol>`}
    <div class="actions"><${Action} id="rotateDkim" args=${{ path: { id: domain.id } }} before=${rotate} onDone=${onChange}
      done=${t("New keys are made. Publish their records.")}>${t("Rotate keys")}</${Action}></div></section>`;
}

function rotationOf(keys) {
  const published = !keys.some(({ stage, hasOlder }) => stage === "new" && hasOlder);
  return [
    [t("New keys are made"), true],
    [t("Their records are published and found"), published],
    [t("The new keys sign; the old ones stay a week for mail under way"), published],
    [t("The old keys are gone from this list; delete their records"), false],
  ];
}

// ---- tracking, removal ----

function Tracking({ domain, onChange }) {
  if (!allowed("updateSendingDomain")) return null;
  const { open_tracking: opens, click_tracking: clicks, tracking_subdomain: host } = domain;
  return html`<section class="stack" aria-labelledby="tracking"><h2 id="tracking">${t("Tracking")}</h2>
    <${Form} key=${domain.id} id="updateSendingDomain" path=${{ id: domain.id }} initial=${{ open_tracking: opens, click_tracking: clicks, tracking_subdomain: host ?? "" }}
      body=${(values) => ({ ...values, tracking_subdomain: values.tracking_subdomain || null })} onDone=${onChange} done=${t("Saved")}>
      <${Field} name="open_tracking" kind="checkbox" label=${t("Count opens")} help=${t("HTML mail gets an invisible picture. Some mail programs load it by themselves; those opens are told apart.")} />
      <${Field} name="click_tracking" kind="checkbox" label=${t("Count clicks")} help=${t("Links of HTML mail lead over the tracking host.")} />
      <${Field} name="tracking_subdomain" label=${t("Tracking host")} spellcheck=${false} autocomplete="off"
        help=${t("A new one is used once its record is found. Empty: this server's own address.")} />
    </${Form}></section>`;
}

function Removal({ domain }) {
  const [refused, setRefused] = useState(null);
  if (!allowed("deleteSendingDomain")) return null;
  const remove = async () => {
    const sure = await confirm({
      title: t("Delete {domain}?", { domain: domain.domain }), action: t("Delete"), name: domain.domain,
      text: t("Mail from this domain is refused from then on, and {keys} can never sign again. To send from it later, new records have to be published.", {
        keys: count(domain.dkim.length, "signing key", "signing keys"),
      }),
    });
    if (!sure) return;
    try {
      await call("deleteSendingDomain", { path: { id: domain.id } });
      announce(t("Deleted"));
      go("domains");
    } catch (error) {
      setRefused(error);
      announce(error.message, { fault: true });
    }
  };
  return html`<section class="stack" aria-labelledby="removal"><h2 id="removal">${t("Delete domain")}</h2>
    ${refused && html`<div class="notice fault" role="alert"><p>${refused.message} <code class="muted">${refused.code}</code></p>
      ${refused.details.by && html`<ul>${refused.details.by.map((one) => html`<li><a href=${href(`campaigns/${one}`)}>${one}</a></li>`)}</ul>`}</div>`}
    <div class="actions"><button type="button" class="danger" data-operation="deleteSendingDomain" onClick=${remove}>${t("Delete")}</button></div></section>`;
}
