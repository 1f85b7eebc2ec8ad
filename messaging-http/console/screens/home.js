// Home: what happened lately, what needs somebody, the first steps, and events as they come.
import { allowed, urlOf, workspace } from "../lib/api.js";
import { Code, count, dayOf, Figure, Head, html, laterDay, Loaded, number, percent, relative, Sandboxed, startOf, t, useCall, useEffect, useState } from "../lib/ui.js";
import { href } from "../lib/route.js";

export default function Home() {
  if (!workspace()) return html`<${NoWorkspace} />`;
  return html`
    <${Head} title=${t("Home")} text=${workspace().name}>
      ${allowed("sendMessage") && html`<a class="button primary" href=${href("send")}>${t("Send a message")}</a>`}
    </${Head}>
    <${FirstSteps} />
    <${Needs} />
    ${allowed("getAnalyticsOverview") && html`<${Overview} />`}
    ${allowed("listWebhookEvents") && html`<${Tail} />`}`;
}

function NoWorkspace() {
  return html`<${Head} title=${t("Home")} />
    <div class="empty"><p class="empty-title">${t("You are in no workspace yet")}</p>
      <p>${t("Ask an admin of yours to invite you, or make a workspace of your own.")}</p>
      <a class="button primary" href=${href("workspace", { new: 1 })}>${t("New workspace")}</a> <a class="button" href=${href("account")}>${t("Your invitations")}</a></div>`;
}

// ---- the last seven days ----

const NAMES = [["sent", "Sent"], ["delivered", "Delivered"], ["bounces", "Bounced"], ["unique_opens", "Opened"], ["unique_clicks", "Clicked"]];
const SERIES = NAMES.slice(0, 3);
const MINUTE = 60000;

function Overview() {
  // Today and the six days before it, in the workspace; a page that stays open past midnight goes on with the next day.
  const [today, setToday] = useState(() => dayOf(Date.now()));
  useEffect(() => {
    const timer = setInterval(() => setToday(dayOf(Date.now())), MINUTE);
    return () => clearInterval(timer);
  }, []);
  const begin = (later) => startOf(laterDay(today, later)).toISOString();
  const week = useCall("getAnalyticsOverview", { query: { from: begin(-6), to: begin(1), interval: "day" } });
  const before = useCall("getAnalyticsOverview", { query: { from: begin(-13), to: begin(-6), interval: "day" } });
  const [chart, setChart] = useState(null);
  // A line along the bottom tells nothing.
  const isDrawn = week.data?.series.some((point) => SERIES.some(([name]) => point[name]));
  useEffect(() => { if (isDrawn) import("../lib/chart.js").then(setChart); }, [isDrawn]);
  return html`<section class="stack" aria-labelledby="week"><h2 id="week">${t("Last seven days")}</h2>
    <${Sandboxed} />
    <${Loaded} of=${week}>${({ totals, series }) => html`
      <div class="grid">${NAMES.map(([name, label]) => html`<${Figure} name=${t(label)} value=${totals[name]}
        note=${change(totals[name], before.data?.totals[name])} href=${href("analytics")} />`)}</div>
      ${chart && html`<${chart.Chart} points=${series} label=${t("Messages by day")} series=${SERIES.map(([name, label]) => ({ name, label: t(label) }))} />`}`}
    </${Loaded}></section>`;
}

function change(now, before) {
  if (before === undefined) return "";
  if (!before) return now ? t("none the week before") : "";
  const share = (now - before) / before;
  if (!share) return t("as the week before");
  return share > 0 ? t("{share} more than the week before", { share: percent(share) }) : t("{share} less than the week before", { share: percent(-share) });
}

// ---- what needs somebody ----

function Needs() {
  const domains = useCall(allowed("listSendingDomains") && "listSendingDomains", { query: { limit: 200 } });
  const webhooks = useCall(allowed("listWebhooks") && "listWebhooks", { query: { limit: 200 } });
  const campaigns = useCall(allowed("listCampaigns") && "listCampaigns", { query: { status: "paused" } });
  const channels = useCall(allowed("listChannels") && "listChannels");
  const failing = (channels.data?.data ?? []).filter(({ status }) => status === "failing");
  const [names, setNames] = useState(null);
  useEffect(() => { if (failing.length) import("../lib/channels.js").then(setNames); }, [failing.length > 0]);
  const system = useCall(allowed("getSystem") && "getSystem");
  const keys = useCall(allowed("listApiKeys") && "listApiKeys", { query: { limit: 200 } });
  const found = [];
  if (system.data?.fenced) found.push([t("Nothing is sent: this is a restored copy. {cure}", { cure: system.data.fenced.cure ?? "" }), href("system")]);
  const held = (system.data?.held ?? []).filter(({ reason }) => reason === "held").reduce((sum, one) => sum + one.count, 0);
  if (held) found.push([count(held, "message is held back", "messages are held back"), href("system")]);
  for (const one of domains.data?.data ?? []) {
    if (one.status !== "verified") found.push([t("{domain} is not verified: mail from it is refused", { domain: one.domain }), href(`domains/${one.id}`)]);
  }
  for (const one of webhooks.data?.data ?? []) {
    if (one.status === "disabled") found.push([t("The webhook {url} was disabled because its deliveries failed", { url: one.url }), href(`webhooks/${one.id}`)]);
  }
  for (const one of (keys.data?.data ?? []).filter(endsSoon)) {
    found.push([t("The API key {name} ends {when}: programs that call with it are refused afterwards", { name: one.name, when: relative(one.expires_at) }), href("keys")]);
  }
  for (const one of names ? failing : []) {
    found.push([t("{channel} is not sent: {error}", { channel: names.channelName(one.channel), error: one.error ?? "" }), href(`channels/${one.channel}`)]);
  }
  for (const one of campaigns.data?.data ?? []) found.push([t("The campaign {name} is paused", { name: one.name }), href(`campaigns/${one.id}`)]);
  if (!found.length) return null;
  return html`<section class="notice warning" aria-labelledby="needs"><h2 id="needs">${t("Needs you")}</h2>
    <ul>${found.slice(0, 8).map(([text, link]) => html`<li><a href=${link}>${text}</a></li>`)}</ul>
    ${found.length > 8 && html`<p>${t("and {number} more", { number: number(found.length - 8) })}</p>`}</section>`;
}

const SOON = 14 * 86400000;

/** A key that ends soon, and that nobody has revoked or replaced. */
function endsSoon({ expires_at, revoked_at, replaced_by }) {
  const left = new Date(expires_at) - Date.now();
  return Boolean(expires_at) && !revoked_at && !replaced_by && left > 0 && left <= SOON;
}

// ---- the first steps ----

function FirstSteps() {
  const messages = useCall(allowed("listMessages") && "listMessages", { query: { limit: 1 } }, { every: 5000 });
  const sandbox = useCall(allowed("listSandboxMessages") && "listSandboxMessages", { query: { limit: 1 } }, { every: 5000 });
  const domains = useCall(allowed("listSendingDomains") && "listSendingDomains", { query: { limit: 200 } });
  const channels = useCall(allowed("listChannels") && "listChannels");
  const keys = useCall(allowed("listApiKeys") && "listApiKeys", { query: { limit: 200 } }, { every: 5000 });
  if (!allowed("sendMessage") || !messages.data || !domains.data || channels.loading) return null;
  const [message] = messages.data.data;
  const own = domains.data.data.find((one) => !one.domain.endsWith(".test"));
  const from = domains.data.data.find((one) => one.status === "verified");
  const used = keys.data?.data.some((key) => key.last_used_at);
  // Where mail really leaves, or no domain may send yet, nothing is promised that does not hold.
  const isSandbox = channels.data?.data.find(({ channel }) => channel === "email")?.provider === "sandbox";
  const send = [t("Send a message"), Boolean(message), from
    ? html`<p><a href=${href("send", { to: "ann@example.com", subject: "Hello", text: "It works", from_email: `hello@${from.domain}` })}>${t("A filled form is ready")}</a>. ${isSandbox && t("The sandbox captures what is sent; nothing leaves this machine.")}</p>`
    : html`<p>${t("As soon as a domain of yours is verified.")}</p>`];
  // What goes to a recipient of the simulator, the sandbox does not keep.
  const isSimulated = /@simulator\.invalid$/i.test(message?.to ?? "");
  const see = isSandbox && !isSimulated
    ? [t("See it captured"), Boolean(sandbox.data?.data.length), html`<p><a href=${message ? href(`messages/${message.message_id}`) : href("sandbox")}>${t("Look at what became of it")}</a> ${t("and at the mail as it would have been sent.")}</p>`]
    : [t("See what became of it"), Boolean(message), html`<p>${t("Each message tells what happened to it, with the words of the other server.")}</p>`];
  const program = [t("Send from your program"), Boolean(used), html`<p>${t("The same with curl; a key comes from")} <a href=${href("keys", { new: 1 })}>${t("Keys")}</a>.</p>
    <${Code} text=${curl(from)} label=${t("curl command")} />`];
  const add = [t("Add a domain of yours"), Boolean(own), html`<p><a href=${href("domains", { new: 1 })}>${t("Add a domain")}</a> ${t("and publish its DNS records, to send to the world.")}</p>`];
  const steps = from ? [send, see, program, add] : [add, send, see, program];
  if (steps.every(([, done]) => done)) return null;
  return html`<section class="stack" aria-labelledby="steps"><h2 id="steps">${t("First steps")}</h2>
    <ol class="steps">${steps.map(([title, done, text], nth) => html`<li class=${done ? "done" : ""}>
      <span class="step-sign" aria-hidden="true">${done ? "✓" : nth + 1}</span>
      <div><h3>${title}${done && html`<span class="sr"> ${t("(done)")}</span>`}</h3>${!done && text}</div></li>`)}</ol></section>`;
}

function curl(domain) {
  const body = JSON.stringify({ channel: "email", to: "ann@example.com", from_email: `hello@${domain?.domain ?? "example.com"}`, subject: "Hello", text: "It works" });
  return `curl ${urlOf("sendMessage")} \\\n  -H "Authorization: Bearer $MESSAGING_API_KEY" \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}

// ---- events ----

function Tail() {
  const [events, setEvents] = useState([]);
  const [tools, setTools] = useState(null);
  useEffect(() => {
    let stop;
    let gone = false;
    import("../lib/live.js").then((live) => {
      if (gone) return;
      setTools(live);
      stop = live.listen((fresh) => setEvents((old) => [...fresh.toReversed(), ...old].slice(0, 10)));
    });
    return () => {
      gone = true;
      stop?.();
    };
  }, []);
  return html`<section class="stack" aria-labelledby="tail"><h2 id="tail">${t("As it happens")}</h2>
    ${events.length && tools
      ? html`<ul class="tail">${events.map((event) => html`<${tools.EventLine} key=${event.id} event=${event} />`)}</ul>`
      : html`<p class="muted">${t("Events of messages appear here as they come.")}</p>`}
    <p><a href=${href("live")}>${t("All events")}</a></p></section>`;
}
