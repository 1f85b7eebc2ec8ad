// Who gets a campaign: lists and segments, those who are left out, and how many remain, with the reasons of the others.
import { call } from "../lib/api.js";
import { about, Failed, html, Loading, t, useCall, useEffect, useState } from "../lib/ui.js";
import { Choices } from "../lib/choices.js";
import { useForm } from "../lib/form.js";
import { href } from "../lib/route.js";

const PAUSE_MS = 400;

export default function Audience() {
  const lists = useCall("listLists", { query: { limit: 200 } });
  const segments = useCall("listSegments", { query: { limit: 200 } });
  const rows = (found, size) => found.data?.data.map((one) => ({ id: one.id, name: one.name, size: one[size] }));
  return html`<fieldset id="audience" tabindex="-1"><legend>${t("Audience")}</legend>
    <${Choices} name="audience.list_ids" label=${t("Lists")} rows=${rows(lists, "contact_count")} error=${lists.error} none=${html`${t("There are no lists yet.")} <a href=${href("lists", { new: 1 })}>${t("Make one")}</a>`} />
    <${Choices} name="audience.segment_ids" label=${t("Segments")} rows=${rows(segments, "size")} error=${segments.error} none=${html`${t("There are no segments yet.")} <a href=${href("segments", { new: 1 })}>${t("Make one")}</a>`} />
    <${Excluded} rows=${rows(lists, "contact_count")} />
  </fieldset>`;
}

function Excluded({ rows }) {
  const [{ audience }] = useForm();
  if (!rows?.length) return null;
  return html`<details open=${audience.exclude_list_ids.length > 0 || undefined}><summary>${t("Leave somebody out")}</summary>
    <${Choices} name="audience.exclude_list_ids" label=${t("Not to those in these lists")} rows=${rows} /></details>`;
}

const STEPS = [
  ["excluded", "Left out by a list"], ["no_address", "Without an address"], ["suppressed", "Suppressed"], ["no_consent", "Have not agreed"],
  ["duplicates", "Same address as another"],
];

const isEmpty = ({ list_ids: lists, segment_ids: segments }) => !lists.length && !segments.length;

/** How many get it: counted anew a moment after the last change; a count that nobody waits for is given up. */
export function useAudience(channel, audience) {
  const [state, setState] = useState({ loading: true });
  const [round, setRound] = useState(0);
  const asked = JSON.stringify(audience);
  useEffect(() => {
    if (isEmpty(audience)) {
      setState({ isEmpty: true });
      return undefined;
    }
    const abort = new AbortController();
    setState((old) => ({ data: old.data, loading: true }));
    const timer = setTimeout(() => {
      call("previewAudience", { body: { channel, audience }, signal: abort.signal }).then(
        (data) => setState({ data }),
        (error) => !abort.signal.aborted && setState({ error }),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [asked, round]);
  return { ...state, reload: () => setRound(round + 1) };
}

/** How many of those who match get the campaign. */
export function AudienceSum({ of }) {
  const { data, error, loading, isEmpty: none } = of;
  return html`<section class="card" aria-labelledby="sum">
    <h2 id="sum">${t("Recipients")}</h2>
    ${none && html`<p class="muted">${t("Choose a list or a segment, and see how many people that is.")}</p>`}
    ${error && html`<${Failed} error=${error} retry=${of.reload} />`}
    ${!data && loading && html`<${Loading} lines=${4} />`}
    ${data && html`<table class="sum" aria-busy=${loading ? "true" : undefined}><tbody>
      <tr><th scope="row">${t("In these lists and segments")}</th><td class="numeric">${about(data.breakdown.matched, data.exact)}</td></tr>
      ${STEPS.filter(([name]) => data.breakdown[name] > 0).map(([name, label]) => html`<tr class="muted"><th scope="row">${t(label)}</th><td class="numeric">− ${about(data.breakdown[name], data.exact)}</td></tr>`)}
      <tr class="total"><th scope="row">${t("Get it")}</th><td class="numeric">${about(data.audience_estimate, data.exact)}</td></tr>
    </tbody></table>
    <p class="help">${data.exact ? t("As of now. It is counted again when the campaign starts.") : t("Estimated from some of the contacts, since counting them all takes longer. It is counted exactly when the campaign starts.")}</p>`}
  </section>`;
}

/** The same for a campaign that is not being changed. */
export function Estimate({ campaign }) {
  return html`<${AudienceSum} of=${useAudience(campaign.channel, campaign.audience)} />`;
}
