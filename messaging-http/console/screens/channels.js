// Channels: by which provider each of them sends. The page of one is `channel.js`.
import { Badge, Head, html, Loaded, t, useCall } from "../lib/ui.js";
import { Table } from "../lib/table.js";
import { href } from "../lib/route.js";
import { channelName } from "../lib/channels.js";
import { providerTitle } from "./channel_providers.js";
import Channel from "./channel.js";

export default function Channels({ segments }) {
  const channels = useCall("listChannels");
  if (segments[0]) return html`<${Channel} name=${segments[0]} channels=${channels} />`;
  return html`
    <${Head} title=${t("Channels")} text=${t("How messages leave: by email, SMS, push, Telegram, WhatsApp, Viber. Each needs a provider.")} />
    <${Loaded} of=${channels} skeleton=${6}>${({ data }) => html`
      <${Table} caption=${t("Channels")} rows=${data} rowKey=${(row) => row.channel} rowHref=${(row) => href(`channels/${row.channel}`)} columns=${[
        { label: t("Channel"), cell: (row) => channelName(row.channel) },
        { label: t("Provider"), cell: (row) => (row.configured ? t(providerTitle(row.channel, row.provider)) : html`<span class="muted">${t("none")}</span>`) },
        { label: t("State"), cell: (row) => html`<${ChannelState} channel=${row} />` },
        { label: t("Last error"), wide: true, cell: (row) => row.error && html`<span class="fault-text">${row.error}</span>` },
      ]} actions=${(row) => html`<a class="button small" href=${href(`channels/${row.channel}`)}>${row.configured ? t("Change") : t("Set up")}<span class="sr"> ${channelName(row.channel)}</span></a>`} />`}</${Loaded}>`;
}

/** The state of a channel as a badge. */
export function ChannelState({ channel }) {
  if (!channel.configured) return html`<${Badge} status="off">${t("not set up")}</${Badge}>`;
  if (channel.provider === "sandbox") return html`<${Badge} status="scheduled">${t("sandbox")}</${Badge}>`;
  const tone = { active: "active", failing: "failed", throttled: "warning" }[channel.status];
  return html`<${Badge} status=${tone}>${t(channel.status)}</${Badge}>`;
}
