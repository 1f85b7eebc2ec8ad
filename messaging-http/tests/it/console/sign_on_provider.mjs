// A single sign-on provider that is not ours: the npm package oidc-provider, with its own pages for signing in, on loopback.
//
// Usage: node sign_on_provider.mjs PATH-OF-oidc-provider/lib/index.js SETTINGS
//
// SETTINGS is JSON: `port` (0 for any), `redirect_uri`, `secret` of the client (none for a public one), `algorithm` of the ID
// tokens, `in_token` for claims in the ID token and not at the UserInfo endpoint alone, and `people`: claims by sign-in name,
// which is the subject, too. Every start makes a new key. Prints the issuer, and ends when its standard input does.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const KEYS = { RS256: ["rsa", { modulusLength: 2048 }], ES256: ["ec", { namedCurve: "P-256" }], EdDSA: ["ed25519", {}] };

const [library, settings] = process.argv.slice(2);
const { port, redirect_uri, secret, algorithm, in_token, people } = JSON.parse(settings);
const { default: Provider } = await import(pathToFileURL(library));

const key = generateKeyPairSync(...KEYS[algorithm]).privateKey.export({ format: "jwk" });
const client = {
  client_id: "messaging", redirect_uris: [redirect_uri], id_token_signed_response_alg: algorithm,
  ...(secret ? { client_secret: secret } : { token_endpoint_auth_method: "none" }),
};
const configuration = {
  clients: [client],
  jwks: { keys: [{ ...key, use: "sig", alg: algorithm }] },
  pkce: { required: () => true },
  conformIdTokenClaims: !in_token,
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
  cookies: { keys: ["a key of nothing but a test"] },
  findAccount: (_, sub) => people[sub] && { accountId: sub, claims: () => ({ sub, ...people[sub] }) },
};

const server = createServer();
server.listen(port, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  server.on("request", new Provider(issuer, configuration).callback());
  console.log(issuer);
});
process.stdin.resume().on("end", () => process.exit());
