// A test of a template: one message to one address.
import { me } from "../lib/api.js";
import { html, t, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { href } from "../lib/route.js";

const TO = {
  email: ["email", "you@example.com"], sms: ["tel", "+491701234567"], whatsapp: ["tel", "+491701234567"], viber: ["tel", "+491701234567"],
  telegram: ["text", "123456789"], push: ["text", ""],
};

// To oneself, if that is an address to which something can be sent.
function mine(channel) {
  const { email } = me().user;
  return channel === "email" && /@.+\./.test(email) ? email : "";
}

// The names of a template's variables as an object to be filled.
function skeleton(names) {
  const object = {};
  for (const name of names) {
    const path = name.split(".");
    const last = path.pop();
    path.reduce((inner, part) => (inner[part] ??= {}), object)[last] = "";
  }
  return object;
}

export function TestSend({ template, close }) {
  const [sent, setSent] = useState(null);
  const { channel } = template;
  const [kind, placeholder] = TO[channel];
  if (sent) {
    return html`<p>${t("The test is on its way.")}</p>
      <div class="actions"><a class="button primary" href=${href(`messages/${sent.message_id}`)} onClick=${() => close()}>${t("See what becomes of it")}</a>
        <button type="button" onClick=${() => close()}>${t("Close")}</button></div>`;
  }
  return html`
    <p class="muted">${t("Version {version}, as saved, goes to one address. It counts in no campaign.", { version: template.version })}</p>
    <${Form} id="sendMessage" submit=${t("Send")} initial=${{ to: mine(channel), variables: skeleton(template.variables) }} onDone=${setSent}
      body=${({ to, variables, from_email: from }) => ({ channel, to, template_id: template.id, ...(variables && { variables }), ...(from && { from_email: from }) })}>
      <${Field} name="to" label=${t("To")} kind=${kind} placeholder=${placeholder} required />
      ${channel === "email" && !template.from_email && html`<${Field} name="from_email" label=${t("From")} kind="email" help=${t("The template names no sender. Left empty, the workspace's domain is used.")} />`}
      ${template.variables.length > 0 && html`<${Field} name="variables" label=${t("Variables")} kind="json" rows=${4}
        help=${t("As JSON. What stays empty is printed as nothing.")} />`}
    </${Form}>`;
}
