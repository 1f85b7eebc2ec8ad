// One channel: its provider and settings, the address for callbacks, a test.
import { allowed, call } from "../lib/api.js";
import { Action, announce, Badge, confirm, Copy, count, Facts, Failed, Head, html, Loaded, number, t, useEffect, useState } from "../lib/ui.js";
import { Field, Form, useForm } from "../lib/form.js";
import { href } from "../lib/route.js";
import { channelName } from "../lib/channels.js";
import { CALLBACKS, CHANNELS, providerTitle } from "./channel_providers.js";
import { bodyOf, initialOf, ROUTES } from "./channel_config.js";
import { ChannelState } from "./channels.js";

// A page of waiting messages is enough to tell many from few.
const COUNTED = 200;

export default function Channel({ name, channels }) {
  // What a write answered takes the place of what was loaded.
  const [answer, setAnswer] = useState(null);
  const { data } = channels;
  const stored = answer ?? data?.data.find(({ channel }) => channel === name);
  const title = channelName(name);
  const forgotten = () => {
    setAnswer(null);
    channels.reload();
  };
  return html`
    <${Head} title=${title} back=${href("channels")} backText=${t("Channels")} badge=${stored && html`<${ChannelState} channel=${stored} />`} />
    <${Loaded} of=${channels}>${() => (stored
      ? html`<${Told} channel=${stored} /><${Settings} channel=${stored} onDone=${setAnswer} />
        ${stored.callback_url && html`<${Callback} channel=${stored} />`}
        ${stored.configured && html`<${Test} key=${stored.provider} channel=${stored} />`}
        ${stored.configured && html`<${Removal} channel=${stored} title=${title} onDone=${forgotten} />`}`
      : html`<${Failed} error=${{ status: 404 }} />`)}</${Loaded}>`;
}

function Told({ channel }) {
  if (!channel.error && channel.status === "active") return null;
  const texts = {
    failing: t("Nothing is sent here: the provider refuses our sign-in or account. Messages wait; every five minutes one is tried, and at once after new settings."),
    throttled: t("The provider asked to wait. Messages go on by themselves."),
  };
  return html`<div class="notice ${channel.status === "failing" ? "fault" : "warning"}" role="status">
    <p>${texts[channel.status] ?? t("Something is wrong with this channel.")}</p>
    ${channel.error && html`<p>${t("The provider said:")} <strong>${channel.error}</strong></p>`}</div>`;
}

// ---- settings ----

function Settings({ channel, onDone }) {
  const known = CHANNELS[channel.channel]?.providers ?? {};
  const names = [...new Set([...Object.keys(known), channel.provider])];
  const [chosen, setChosen] = useState(channel.configured ? channel.provider : "");
  useEffect(() => { if (channel.configured) setChosen(channel.provider); }, [channel]);
  const isStored = channel.configured && chosen === channel.provider;
  return html`<section class="stack" aria-labelledby="settings"><h2 id="settings">${t("Provider")}</h2>
    <fieldset><legend class="sr">${t("Provider")}</legend>${names.map((name) => html`<div class="field check">
      <label><input type="radio" name="provider" value=${name} checked=${name === chosen} onChange=${() => setChosen(name)} />
        <span>${t(known[name]?.title ?? name)}${channel.configured && name === channel.provider && html` <span class="muted">${t("in use")}</span>`}</span></label>
      ${known[name]?.text && html`<p class="help">${t(known[name].text)}</p>`}</div>`)}</fieldset>
    ${chosen && html`<${Form} key=${`${chosen}${JSON.stringify(channel)}`} id="setChannel" path=${{ channel: channel.channel }}
      initial=${initialOf(channel, chosen)} body=${(values) => bodyOf(channel, chosen, values)} onDone=${onDone}
      submit=${isStored ? t("Save") : t("Save and use {provider}", { provider: t(providerTitle(channel.channel, chosen)) })} done=${t("Saved")}>
      ${known[chosen]
        ? html`<${Members} channel=${channel} provider=${chosen} prefix="config" stored=${isStored ? channel.config : {}} />
          ${CHANNELS[channel.channel].routes && chosen !== "sandbox" && html`<${Routes} channel=${channel} main=${chosen} isStored=${isStored} />`}`
        : html`<${Field} name="config" required kind="json" rows=${10} label=${t("Settings")} help=${t("Of a provider that was added to this server. *** keeps a stored secret.")} />`}
      ${channel.configured && !isStored && Object.keys(channel.config).length > 0 && html`<p class="help">${t("Takes the place of {provider}, whose settings and secrets are then gone.", { provider: t(providerTitle(channel.channel, channel.provider)) })}</p>`}
    </${Form}>`}</section>`;
}

/** The settings of one provider as fields; secrets that are stored are kept when their field stays empty. */
function Members({ channel, provider, prefix, stored }) {
  const { fields } = CHANNELS[channel.channel].providers[provider];
  return fields.map((field) => html`<${Member} key=${field.name} field=${field} name=${`${prefix}.${field.name}`} stored=${stored?.[field.name]} />`);
}

function Member({ field, name, stored }) {
  const { label, help, kind, secret, optional, options, placeholder, made, maxlength } = field;
  if (made) {
    return stored
      ? html`<div class="field"><span class="muted">${t(label)}</span><p><code>${stored}</code> <${Copy} text=${stored} /></p><p class="help">${t(help)}</p></div>`
      : html`<p class="muted">${t("A pair of keys is made when you save.")}</p>`;
  }
  const isKept = secret && stored;
  const shown = html`${t(label)}${optional && html` <span class="muted">${t("optional")}</span>`}`;
  const notes = [isKept && t("One is stored and never shown. Leave empty to keep it; after a change of account or address, enter it again."), help && t(help)].filter(Boolean).join(" ");
  const type = options ? "select" : kind ?? (secret ? "password" : "text");
  return html`<${Field} name=${name} label=${shown} kind=${type} options=${options?.map(([value, text]) => [value, t(text)])} optional=${optional}
    help=${notes} placeholder=${isKept ? "••••••••" : placeholder && t(placeholder)} maxlength=${maxlength}
    autocomplete=${secret ? "new-password" : "off"} spellcheck=${false} rows=${secret ? 4 : undefined} class=${kind === "textarea" ? "mono" : undefined} />`;
}

// Other push providers beside the main one: an address says by its form which one it belongs to.
function Routes({ channel, main, isStored }) {
  const [values, change] = useForm();
  const others = Object.keys(CHANNELS[channel.channel].providers).filter((name) => name !== main && name !== "sandbox");
  return others.map((name) => {
    const given = values[ROUTES]?.[name];
    return html`<fieldset key=${name}><legend>${t("Also {provider}", { provider: t(providerTitle(channel.channel, name)) })}</legend>
      <div class="field check"><label><input type="checkbox" checked=${Boolean(given)} onChange=${(event) => change(`${ROUTES}.${name}`, event.target.checked)} />
        <span>${t("Send to its devices too")}</span></label>
        ${isStored && channel.config.routes?.[name] && !given && html`<p class="fault-text">${name === "webpush"
          ? t("Saving deletes its keys. Browsers that have subscribed get nothing any more and have to subscribe anew.")
          : t("Saving deletes its settings and secrets.")}</p>`}</div>
      ${given && html`<${Members} channel=${channel} provider=${name} prefix="config.routes.${name}" stored=${isStored ? channel.config.routes?.[name] : {}} />`}</fieldset>`;
  });
}

// ---- callbacks, test, removal ----

function Callback({ channel }) {
  const { callback_url: url, provider } = channel;
  return html`<section class="stack" aria-labelledby="callback"><h2 id="callback">${t("Callback address")}</h2>
    <p>${t("The provider reports here what became of messages, and what people answered.")} ${CALLBACKS[provider] && t(CALLBACKS[provider])}</p>
    <${Facts} pairs=${[
      [t("Address"), html`<code>${url}</code> <${Copy} text=${url} label=${html`${t("Copy")}<span class="sr"> ${t("callback address")}</span>`} />`],
      // Meta asks for the last part of the address as proof that it is ours.
      [t("Verify token"), provider === "cloud_api" && html`<code>${url.split("/").pop()}</code> <${Copy} text=${url.split("/").pop()} label=${html`${t("Copy")}<span class="sr"> ${t("verify token")}</span>`} />`],
    ].filter(([, value]) => value)} />
    <p class="muted">${t("Keep it to yourself. It changes with the settings.")}</p></section>`;
}

const REFUSED_SIGN_IN = /\b40[13]\b/;

function Test({ channel }) {
  const [result, setResult] = useState(null);
  const { to } = CHANNELS[channel.channel] ?? { to: { label: "To", placeholder: "" } };
  if (!allowed("testChannel")) return null;
  return html`<section class="stack" aria-labelledby="test"><h2 id="test">${t("Send a test")}</h2>
    <p class="muted">${channel.provider === "sandbox" ? t("The sandbox takes it; nothing leaves.") : t("One real message through {provider}, at its price. It is kept nowhere.", { provider: t(providerTitle(channel.channel, channel.provider)) })}</p>
    <${Form} id="testChannel" path=${{ channel: channel.channel }} onDone=${setResult} onChange=${() => setResult(null)} submit=${t("Send a test")}>
      <${Field} name="to" label=${t(to.label)} placeholder=${to.placeholder} autocomplete="off" spellcheck=${false} />
    </${Form}>
    ${result && html`<div class="notice ${result.ok ? "good" : "fault"}" role="status">
      <p><${Badge} status=${result.ok ? "ok" : "failed"}>${result.ok ? t("accepted") : t("refused")}</${Badge}> ${result.response}</p>
      ${!result.ok && REFUSED_SIGN_IN.test(result.response) && html`<p>${t("The provider does not know this account or key. Enter it again above and save, then test once more.")}</p>`}</div>`}</section>`;
}

// Messages that wait on a channel, as words.
async function waitingOn(channel) {
  const pages = await Promise.all(["queued", "deferred"].map((status) => call("listMessages", { query: { channel, status, limit: COUNTED }, quiet: true }))).catch(() => null);
  if (!pages) return t("nobody could count them");
  const found = pages.reduce((sum, page) => sum + page.data.length, 0);
  return pages.some((page) => page.next_cursor) ? t("more than {number}", { number: number(COUNTED) }) : count(found, "message", "messages");
}

function Removal({ channel, title, onDone }) {
  if (!allowed("deleteChannel")) return null;
  const sure = async () => {
    const waiting = await waitingOn(channel.channel);
    return confirm({
      title: t("Delete the settings of {channel}?", { channel: title }), action: t("Delete"), name: title,
      text: [
        channel.channel === "email"
          ? t("Mail then really leaves: this server delivers it itself.")
          : t("New messages are refused, and those that wait fail: {waiting}.", { waiting }),
        t("Stored secrets are gone; nobody can read them back."),
      ].join(" "),
    });
  };
  return html`<section class="stack" aria-labelledby="removal"><h2 id="removal">${t("Delete settings")}</h2>
    <div class="actions"><${Action} id="deleteChannel" className="danger" args=${{ path: { channel: channel.channel } }} before=${sure} onDone=${() => { announce(t("Deleted")); onDone(); }}>${t("Delete")}</${Action}></div></section>`;
}

