// Opens the operation that the address names, and shows those whose text has every word that is searched for.
const operations = [...document.querySelectorAll("details.operation")];
const open = () => {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named && named.tagName === "DETAILS") {
    named.open = true;
    named.scrollIntoView();
  }
};
addEventListener("hashchange", open);
open();
const field = document.getElementById("search");
field.hidden = false;
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const operation of operations) {
    operation.hidden = !words.every((word) => operation.dataset.words.includes(word));
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = words.length > 0 && !section.querySelector("details.operation:not([hidden])");
  }
});
