import { filled } from "../lib/frame.js";
import { equal } from "./check.js";

export function pictures_of_the_mail_take_the_place_of_their_links() {
  const inline = { "logo@acme": "data:image/gif;base64,R0" };
  equal(filled("<img src=\"cid:logo@acme\"><img src='CID:logo@acme'>", inline), "<img src=\"data:image/gif;base64,R0\"><img src='data:image/gif;base64,R0'>");
}

export function a_link_to_no_picture_stays() {
  equal(filled("<img src=\"cid:other\">", {}), "<img src=\"cid:other\">");
}
