import { shownAt, tokensOf, withImages } from "../lib/own_images.js";
import { equal } from "./check.js";

const TOKEN = "CwGiHN1Bd9YAagtJYALhKmIBohzd2_eRxumAU2lJm2AIY4oyPvKxi9p4AmWWEtIymw";

export function images_of_the_server_are_known_by_their_path() {
  const source = `<img src="https://links.example/i/${TOKEN}"><td background='http://127.0.0.1:1/i/${TOKEN}'><img src="https://links.example/i/short">`;
  equal(tokensOf(source), [TOKEN]);
  equal(withImages(source, new Map([[TOKEN, "data:image/png;base64,AA"]])), "<img src=\"data:image/png;base64,AA\"><td background='data:image/png;base64,AA'><img src=\"https://links.example/i/short\">");
  equal(withImages(source, new Map([[TOKEN, null]])), source);
  equal(withImages(undefined, new Map()), undefined);
  equal(tokensOf(null), []);
}

export function images_of_others_are_not_shown() {
  for (const address of [undefined, "", "https://links.example/a.png", "javascript:alert(1)", `data:text/html,/i/${TOKEN}`, "https://links.example/i/short"]) equal(shownAt(address), null);
  equal(shownAt(`https://links.example/i/${TOKEN}`), new URL(`../i/${TOKEN}`, document.baseURI).href);
}
