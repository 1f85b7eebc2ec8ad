// Images that mail shows by their address: upload, copy the address, delete.
import { allowed, call } from "../lib/api.js";
import { Action, announce, bytes, confirm, Copy, Empty, Failed, Head, html, t, Time, useRef, useState } from "../lib/ui.js";
import { List } from "../lib/table.js";

const TYPES = "image/png,image/jpeg,image/gif,image/webp";

export default function Images() {
  const [reloads, setReloads] = useState(0);
  const again = () => setReloads((n) => n + 1);
  return html`
    <${Head} title=${t("Images")} text=${t("Pictures for your mail. Copy the address of one into the src of an img element of a template.")} />
    ${allowed("createImage") && html`<${Upload} onDone=${again} />`}
    <${List} id="listImages" reloads=${reloads} caption=${t("Images")} columns=${columns()}
      actions=${(row) => html`<${Copy} text=${row.url} label=${t("Copy URL")} /> <${Delete} row=${row} onDone=${again} />`}
      empty=${html`<${Empty} title=${t("No images yet")} text=${t("Upload the logo of your mail, or a picture of a product.")}
        example="messaging image create logo.png" />`} />`;
}

// The page may show pictures of its own origin alone, and has come by another address perhaps.
function shown(url) {
  const token = new URL(url).pathname.split("/").pop();
  return new URL(`../i/${token}`, document.baseURI).href;
}

const columns = () => [
  { label: t("Image"), cell: (row) => html`<img class="thumbnail" src=${shown(row.url)} alt=${row.id} width="64" height="64" loading="lazy" />` },
  { label: t("Size"), cell: (row) => `${row.width} × ${row.height}` },
  { label: t("Length"), numeric: true, cell: (row) => bytes(row.bytes) },
  { label: t("Uploaded"), cell: (row) => html`<${Time} at=${row.created_at} />` },
];

function Upload({ onDone }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const input = useRef();
  const send = async () => {
    setBusy(true);
    setError(null);
    try {
      for (const file of input.current.files) await call("createImage", { file });
      announce(t("The image is uploaded"));
      onDone();
    } catch (failure) {
      setError(failure);
      announce(failure.message, { fault: true });
    } finally {
      input.current.value = "";
      setBusy(false);
    }
  };
  return html`<section class="card">
    <label class="field"><span>${t("Upload images")}</span>
      <input ref=${input} type="file" accept=${TYPES} multiple disabled=${busy} data-operation="createImage" onChange=${send} /></label>
    <p class="help">${t("PNG, JPEG, GIF or WebP, at most 5 MiB each.")}</p>
    ${error && html`<${Failed} error=${error} />`}
  </section>`;
}

function Delete({ row, onDone }) {
  const before = () => confirm({
    title: t("Delete the image?"),
    text: t("Mail that was sent does not show it any more. An image that a template shows is not deleted."),
    action: t("Delete"),
  });
  return html`<${Action} id="deleteImage" className="small" args=${{ path: { id: row.id } }} before=${before} onDone=${onDone}
    done=${t("The image is deleted")}>${t("Delete")}</${Action}>`;
}
