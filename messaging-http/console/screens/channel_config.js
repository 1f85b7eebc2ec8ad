// Between a channel's stored settings and the fields of its form. Secrets are shown nowhere: an empty field of a stored one
// is sent as `***`, which keeps it.
import { CHANNELS } from "./channel_providers.js";

const MASK = "***";

/** Which other push providers stand beside the main one; a member of the form, none of the body. */
export const ROUTES = "chosen_routes";

/** The values of the form at its beginning. */
export function initialOf(channel, provider) {
  const isStored = channel.configured && provider === channel.provider;
  const config = isStored ? unmasked(channel.config) : {};
  return { config, [ROUTES]: Object.fromEntries(Object.keys(config.routes ?? {}).map((name) => [name, true])) };
}

function unmasked(config) {
  const pairs = Object.entries(config ?? {}).map(([name, value]) => {
    if (value === MASK) return [name, ""];
    return [name, value && typeof value === "object" && !Array.isArray(value) ? unmasked(value) : value];
  });
  return Object.fromEntries(pairs);
}

/** The body of `setChannel`: settings replace the stored ones as a whole. */
export function bodyOf(channel, provider, values) {
  const stored = channel.configured && provider === channel.provider ? channel.config : {};
  if (!CHANNELS[channel.channel]?.providers[provider]) return { provider, config: values.config };
  const config = membersOf(channel.channel, provider, values.config ?? {}, stored);
  const routes = Object.entries(values[ROUTES] ?? {}).filter(([name, isOn]) => isOn && name !== provider).map(
    ([name]) => [name, membersOf(channel.channel, name, values.config?.routes?.[name] ?? {}, stored.routes?.[name] ?? {})],
  );
  if (routes.length) config.routes = Object.fromEntries(routes);
  return { provider, config };
}

function membersOf(channel, provider, given, stored) {
  const { fields } = CHANNELS[channel].providers[provider];
  const pairs = fields.map(({ name, secret, made }) => {
    if (made) return [name, undefined];
    const value = typeof given[name] === "string" ? given[name].trim() : given[name];
    return [name, (value === "" || value === undefined) && secret && stored[name] ? MASK : value];
  });
  return Object.fromEntries(pairs.filter(([, value]) => value !== "" && value !== undefined && value !== null));
}
