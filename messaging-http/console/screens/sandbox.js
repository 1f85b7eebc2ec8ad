// Sandbox: what the sandbox captured instead of sending it.
import { Empty, Head, html, t, Time, useState } from "../lib/ui.js";
import { allowed } from "../lib/api.js";
import { href } from "../lib/route.js";
import { List } from "../lib/table.js";
import { Later } from "../lib/later.js";
import { News, useFresh } from "../lib/fresh.js";
import { asCurl } from "../lib/show_as.js";
import { channelName } from "../lib/channels.js";

export default function Sandbox({ segments, query }) {
  const [id] = segments;
  return id ? html`<${Later} load=${() => import("./sandbox_mail.js")} id=${id} query=${query} />` : html`<${Captured} query=${query} />`;
}

const QUERY = {};

function Captured({ query }) {
  const [rows, setRows] = useState();
  const [reloads, setReloads] = useState(0);
  const { fresh, more } = useFresh({ id: "listSandboxMessages", query: QUERY, shown: rows, keyOf: (row) => row.message_id, active: !query.cursor });
  return html`
    <${Head} title=${t("Sandbox")} text=${t("Channels that are set to the sandbox send nothing: what would have left is kept here, the newest 10 000.")}>
      ${allowed("sendMessage") && html`<a class="button primary" href=${href("send")}>${t("Send a message")}</a>`}
    </${Head}>
    ${!query.cursor && rows?.length > 0 && html`<${News} fresh=${fresh} more=${more} onShow=${() => setReloads(reloads + 1)} />`}
    <${List} id="listSandboxMessages" caption=${t("Captured messages")} reloads=${reloads + (rows?.length === 0 ? fresh : 0)} onRows=${setRows}
      rowKey=${(row) => row.message_id} rowHref=${(row) => href(`sandbox/${row.message_id}`)} empty=${html`<${Nothing} />`}
      columns=${[
        { label: t("To"), cell: (row) => html`<span class="address" dir="auto">${row.to}</span>` },
        { label: t("Subject"), cell: (row) => row.subject && html`<span class="clipped"><bdi>${row.subject}</bdi></span>` },
        { label: t("From"), cell: (row) => row.from && html`<span class="address" dir="auto">${row.from}</span>` },
        { label: t("Channel"), cell: (row) => channelName(row.channel) },
        { label: t("Time"), cell: (row) => html`<${Time} at=${row.captured_at} />` },
      ]} />`;
}

function Nothing() {
  const body = { channel: "email", to: "ann@example.com", subject: "Hello", text: "It works" };
  return html`<${Empty} title=${t("Nothing was captured yet")} text=${t("Set a channel to the provider sandbox, then send a message on it.")}
    action=${allowed("sendMessage") && t("Send a message")} href=${href("send")} example=${asCurl({ id: "sendMessage", body })} />`;
}
