// A mail's HTML, in a frame of its own: another origin, no scripts of the mail, nothing loaded from elsewhere.
import { html, t, useEffect, useRef, useState } from "./ui.js";

const TALLEST = 4000;

/**
 * `source` is the HTML of the mail; `inline` the images of its `cid:` links, as `{ id: "data:…" }`. `width` in pixels
 * shows it as a narrower screen would, and a `scheme` of "light" or "dark" as a mail program in those colours. Pictures of other
 * servers are loaded only once they are asked for.
 */
export function MailFrame({ source, inline = {}, title, width, scheme }) {
  const frame = useRef();
  const [pictures, setPictures] = useState(false);
  const [height, setHeight] = useState(240);
  const [link, setLink] = useState(null);
  // Our own pixel is left out of the frame, so it is no picture that could be shown.
  const remote = /\b(?:src|background)\s*=\s*["']?https?:|url\(\s*["']?https?:/i.test((source ?? "").replace(/<img\b[^>]*\/t\/o\/[^>]*>/gi, ""));
  useEffect(() => {
    const hear = (event) => {
      // The frame has an opaque origin; its window alone tells that it is ours.
      if (event.source !== frame.current?.contentWindow) return;
      const { ready, height: wanted, link: shown } = event.data ?? {};
      if (ready) frame.current.contentWindow.postMessage({ source: filled(source ?? "", inline), scheme }, "*");
      if (Number.isFinite(wanted)) setHeight(Math.max(60, Math.min(TALLEST, Math.ceil(wanted))));
      if (typeof shown === "string") setLink(shown.slice(0, 2000));
    };
    addEventListener("message", hear);
    frame.current?.contentWindow?.postMessage({ source: filled(source ?? "", inline), scheme }, "*");
    return () => removeEventListener("message", hear);
  }, [source, scheme, pictures]);
  const page = new URL(pictures ? "frame-pictures.html" : "frame.html", new URL("..", import.meta.url)).href;
  return html`<div class="mail">
    ${remote && html`<p class="mail-bar"><button type="button" class="small" aria-pressed=${pictures} onClick=${() => setPictures(!pictures)}>${pictures ? t("Hide pictures") : t("Show pictures")}</button>
      <span class="muted">${t("Pictures of other servers tell them that the mail is read.")}</span></p>`}
    <iframe ref=${frame} key=${pictures} src=${page} sandbox="allow-scripts" title=${title ?? t("The mail")} height=${height}
      width=${width} class=${width ? "narrowed" : ""} style=${{ background: scheme === "dark" ? "#121212" : "" }}></iframe>
    ${link && html`<p class="mail-bar"><span class="muted">${t("Link")}</span> <code>${link}</code></p>`}
  </div>`;
}

/** The HTML with its `cid:` links filled. */
export function filled(source, inline) {
  return source.replace(/cid:([^"'\s)>]+)/gi, (whole, id) => inline[id] ?? whole);
}
