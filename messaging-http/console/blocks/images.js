// Images of the workspace, chosen in a dialog or uploaded there.
import { allowed, call } from "../lib/api.js";
import { announce, dialog, Failed, html, Loaded, t, useCall, useId, useRef, useState } from "../lib/ui.js";
import { shownAt } from "../lib/own_images.js";

const TYPES = "image/png,image/jpeg,image/gif,image/webp";

/** Lets somebody choose or upload an image; comes to it, or to undefined. */
export function chooseImage() {
  return dialog((close) => html`<${Choice} close=${close} />`, { title: t("Choose an image"), wide: true });
}

function Choice({ close }) {
  const [cursor, setCursor] = useState(undefined);
  const found = useCall("listImages", { query: { limit: 24, cursor } }, { quiet: true });
  return html`
    ${allowed("createImage") && html`<${Upload} onDone=${close} />`}
    <${Loaded} of=${found}>${({ data, next_cursor: next }) => (data.length
      ? html`<ul class="image-choice">${data.map((image, nth) => html`<li key=${image.id}><button type="button" onClick=${() => close(image)} aria-label=${t("Image {number}, {width} by {height} pixels", { number: nth + 1, width: image.width, height: image.height })}>
          <img src=${shownAt(image.url)} alt="" loading="lazy" /><span>${image.width} × ${image.height}</span></button></li>`)}</ul>
        ${next && html`<button type="button" class="small" onClick=${() => setCursor(next)}>${t("Older images")}</button>`}`
      : html`<p class="muted">${t("No images yet. Upload the first one.")}</p>`)}</${Loaded}>`;
}

function Upload({ onDone }) {
  const id = useId();
  const input = useRef();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const send = async () => {
    const [file] = input.current.files;
    if (!file) return;
    setBusy(true);
    setError(null);
    try {
      const image = await call("createImage", { file });
      announce(t("The image is uploaded"));
      onDone(image);
    } catch (failure) {
      setError(failure);
      announce(failure.message, { fault: true });
    } finally {
      if (input.current) input.current.value = "";
      setBusy(false);
    }
  };
  return html`<div class="field"><label for=${id}>${t("Upload an image")}</label>
    <input id=${id} ref=${input} type="file" accept=${TYPES} disabled=${busy} data-operation="createImage" onChange=${send} />
    <p class="help">${t("PNG, JPEG, GIF or WebP, at most 5 MiB.")}</p>
    ${error && html`<${Failed} error=${error} />`}</div>`;
}
