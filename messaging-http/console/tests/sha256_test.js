import { Sha256, sha256 } from "../lib/sha256.js";
import { equal } from "./check.js";

const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

// Values of FIPS 180-2.
export async function files_have_the_sum_that_the_standard_says() {
  equal(await sha256(new File([], "empty")), EMPTY);
  equal(await sha256(new File(["abc"], "abc")), ABC);
}

// The fallback for pages without https.
export async function the_sum_by_our_own_hand_is_that_of_the_browser() {
  const bytes = crypto.getRandomValues(new Uint8Array(65000));
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  const expected = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const own = new Sha256();
  // In parts that do not fit its blocks.
  for (let at = 0; at < bytes.length; at += 997) own.update(bytes.subarray(at, at + 997));
  equal(own.digest(), expected);
}
