// The control that chooses the language of the console, for this browser.
import { chooseLanguage, html, language, LANGUAGES, t, useId } from "./ui.js";

export function LanguageChoice() {
  const id = useId();
  return html`<div class="field language"><label for=${id}>${t("Language")}</label>
    <select id=${id} onChange=${(event) => chooseLanguage(event.target.value)}>
      ${Object.entries(LANGUAGES).map(([code, name]) => html`<option value=${code} lang=${code} selected=${code === language()}>${name}</option>`)}</select></div>`;
}
