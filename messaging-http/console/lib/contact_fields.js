// The fields of a contact that are texts: those that a request takes, and what people read for them.
import { schemas } from "../schemas.js";

const LABELS = { email: "Email", phone: "Phone", external_id: "External id", locale: "Language", timezone: "Time zone" };
const taken = Object.entries(schemas.upsertContact.body).filter(([name, { type }]) => type === "string" && !name.includes(".")).map(([name]) => name);

/** Names and labels, in the order in which they are shown; one without a label is called by its name. */
export const CONTACT_FIELDS = [...new Set([...Object.keys(LABELS), ...taken])].map((name) => [name, LABELS[name] ?? name]);
