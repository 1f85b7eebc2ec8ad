// A receiver of webhooks, as small as one can be that looks at signatures.
import { Code, html, t, useState } from "../lib/ui.js";

const PYTHON = `import base64, hmac, json, os
from http.server import BaseHTTPRequestHandler, HTTPServer

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signed = f'{self.headers["webhook-id"]}.{self.headers["webhook-timestamp"]}.'.encode() + body
        wanted = "v1," + base64.b64encode(hmac.digest(KEY, signed, "sha256")).decode()
        is_ours = any(hmac.compare_digest(wanted, one) for one in self.headers["webhook-signature"].split())
        self.send_response(204 if is_ours else 401)
        self.end_headers()
        if is_ours:
            print(json.loads(body)["type"])

HTTPServer(("", 8000), Receiver).serve_forever()`;

const NODE = `import { createHmac } from "node:crypto";
import { createServer } from "node:http";

const key = Buffer.from(process.env.WEBHOOK_SECRET.replace("whsec_", ""), "base64");

createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  const { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": signatures = "" } = request.headers;
  const wanted = "v1," + createHmac("sha256", key).update(\`\${id}.\${time}.\`).update(body).digest("base64");
  const isOurs = signatures.split(" ").includes(wanted);
  response.writeHead(isOurs ? 204 : 401).end();
  if (isOurs) console.log(JSON.parse(body).type);
}).listen(8000);`;

const LANGUAGES = [["python", "Python", PYTHON], ["node", "Node", NODE]];

export function Receiver() {
  const [chosen, setChosen] = useState("python");
  const [, label, text] = LANGUAGES.find(([name]) => name === chosen);
  return html`<section class="stack" aria-labelledby="receiver"><h2 id="receiver">${t("A receiver")}</h2>
    <p class="muted">${t("It listens at port 8000 and prints what happened. Start it with the secret in WEBHOOK_SECRET; webhooks reach it at an https address that others can reach too.")}</p>
    <div class="segmented" role="group" aria-label=${t("Language")}>${LANGUAGES.map(([name, title]) => html`
      <button type="button" aria-pressed=${name === chosen} onClick=${() => setChosen(name)}>${title}</button>`)}</div>
    <${Code} text=${text} label=${t("Receiver in {language}", { language: label })} /></section>`;
}
