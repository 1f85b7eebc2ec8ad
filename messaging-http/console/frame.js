"use strict";
addEventListener("message", ({ data, source }) => {
  if (source !== parent || typeof data?.html !== "string") return;
  const shown = new DOMParser().parseFromString(data.html, "text/html");
  document.head.append(...shown.head.querySelectorAll("style"));
  document.body.replaceChildren(...shown.body.childNodes);
});
