// A choice of public lists, in a form.
import { Choices } from "./choices.js";
import { href } from "./route.js";
import { html, t, useCall } from "./ui.js";

export function PublicLists({ name, label, help }) {
  const found = useCall("listLists", { query: { limit: 200 } });
  const rows = found.data?.data.filter((list) => list.visibility === "public").map((list) => ({ id: list.id, name: list.name, size: list.contact_count }));
  return html`<${Choices} name=${name} label=${label} rows=${rows} error=${found.error} help=${help}
    none=${html`${t("There are no public lists yet. A list becomes public by its visibility.")} <a href=${href("lists")}>${t("Lists")}</a>`} />`;
}
