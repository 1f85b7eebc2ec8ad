import { absolute, count, duration, language, languageOf, LANGUAGES, locale, number, percent, relative, speak, t } from "../lib/ui.js";
import { equal, holds } from "./check.js";

// Speaks a language while it runs.
function speaking(code, texts, run, tags) {
  speak(code, texts, tags);
  try { run(); } finally { speak("en", {}); }
}

export function the_language_is_the_chosen_one_or_the_first_that_there_is() {
  equal(languageOf("de", ["en-US"]), "de");
  equal(languageOf(null, ["it-IT", "DE-at", "en"]), "de");
  equal(languageOf(null, ["it", "ja"]), "en");
  equal(languageOf("tlh", ["de"]), "de");
  equal(languageOf("toString", ["constructor"]), "en");
  equal(languageOf(null, []), "en");
}

export function texts_are_translated_and_what_is_missing_stays_english() {
  speaking("de", { "Hello {name}": "Hallo {name}" }, () => {
    equal([t("Hello {name}", { name: "Ann" }), t("Bye {name}", { name: "Ann" }), t("toString")], ["Hallo Ann", "Bye Ann", "toString"]);
    equal(document.documentElement.lang, "de");
  });
  equal([t("Hello {name}", { name: "Ann" }), language(), document.documentElement.lang], ["Hello Ann", "en", "en"]);
}

export function words_after_numbers_have_the_form_of_the_language() {
  const texts = { "row|rows": { one: "рядок", few: "рядки", many: "рядків", other: "рядка" }, "{n} left": { one: "{n} лишився", other: "{n} лишилось" } };
  speaking("uk", texts, () => {
    equal([1, 2, 5, 11, 21, 22, 25].map((amount) => count(amount, "row", "rows")), ["1 рядок", "2 рядки", "5 рядків", "11 рядків", "21 рядок", "22 рядки", "25 рядків"]);
    equal([t("{n} left", { n: 21 }), t("{n} left", { n: 5 })], ["21 лишився", "5 лишилось"]);
  });
  equal([count(1, "row", "rows"), count(2, "row", "rows")], ["1 row", "2 rows"]);
}

export function numbers_and_times_are_written_as_in_the_language() {
  const now = Date.parse("2026-01-31T09:15:00Z");
  speaking("de", { s: "Sek." }, () => {
    equal([number(1234567), percent(0.012).replace("\u00a0", " "), duration(1200)], ["1.234.567", "1,2 %", "1,2 Sek."]);
    equal(relative("2026-01-30T09:15:00Z", now), "gestern");
    holds(absolute("2026-01-31T12:00:00Z", { dateStyle: "long" }).includes("Januar"));
    equal(locale(), "de-DE");
  }, ["en", "de-DE", "de"]);
  speaking("de", {}, () => equal(locale(), "de"), ["fr"]);
}

export function every_language_is_one_that_browsers_know() {
  equal(Object.keys(LANGUAGES).filter((code) => Intl.PluralRules.supportedLocalesOf(code).length === 0), []);
}
