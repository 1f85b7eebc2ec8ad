// Shows a mail that the page around sends. This document's policy lets no other script run and nothing be loaded;
// the mail's own scripts are inert anyway, because a parsed document never runs them.
(() => {
  const ORIGIN = "*"; // Ours is opaque, so nobody can be named; what is told is no secret.

  // A mail program in these colours follows the rules for them, whatever the browser around prefers.
  const paint = (scheme) => {
    document.documentElement.style.colorScheme = scheme ?? "";
    document.documentElement.style.background = scheme === "dark" ? "#121212" : "";
    if (!scheme) return;
    for (const { cssRules } of document.styleSheets) {
      for (const rule of cssRules) {
        const wanted = /prefers-color-scheme\s*:\s*(light|dark)/i.exec(rule.media?.mediaText ?? "")?.[1].toLowerCase();
        if (wanted) rule.media.mediaText = wanted === scheme ? "all" : "not all";
      }
    }
  };

  const show = (source, scheme) => {
    // The mail may come before this page is parsed; it is sent once more when that is done.
    if (!document.body) return;
    const parsed = new DOMParser().parseFromString(source, "text/html");
    // What could lead elsewhere or ask for something has no place in a preview. The pixel of ours is left out, so that
    // a look is no open.
    for (const element of parsed.querySelectorAll("script, base, meta, link, object, embed, iframe, frame, frameset")) element.remove();
    for (const image of parsed.querySelectorAll("img[src*='/t/o/']")) image.remove();
    for (const element of parsed.querySelectorAll("*")) {
      for (const { name } of [...element.attributes]) {
        if (name.startsWith("on")) element.removeAttribute(name);
      }
    }
    const head = document.head;
    for (const style of document.querySelectorAll("style")) style.remove();
    for (const style of parsed.querySelectorAll("head style")) head.append(document.importNode(style, true));
    const body = document.importNode(parsed.body, true);
    document.body.replaceWith(body);
    paint(scheme);
    measure();
    for (const image of body.querySelectorAll("img")) image.addEventListener("load", measure);
  };

  // The height of the content: that of the scrolled page is never less than the frame's own.
  const measure = () => parent.postMessage({ height: document.documentElement.getBoundingClientRect().height }, ORIGIN);

  addEventListener("message", (event) => {
    if (event.source === parent && typeof event.data?.source === "string") show(event.data.source, event.data.scheme);
  });

  // Links show where they lead, and lead nowhere.
  const tell = (event) => {
    const anchor = event.target.closest?.("a, area");
    if (!anchor) return;
    if (event.type === "click") event.preventDefault();
    parent.postMessage({ link: anchor.getAttribute("href") ?? "" }, ORIGIN);
  };
  for (const type of ["click", "auxclick", "pointerover", "focusin"]) addEventListener(type, tell, true);
  addEventListener("submit", (event) => event.preventDefault(), true);
  addEventListener("resize", () => measure());
  addEventListener("DOMContentLoaded", () => parent.postMessage({ ready: true }, ORIGIN));
})();
