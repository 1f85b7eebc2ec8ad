import { qr } from "../lib/qr.js";
import { equal, holds } from "./check.js";

// As a reader takes it for "messaging".
const SMALL = [
  "#######...###.#######",
  "#.....#.###.#.#.....#",
  "#.###.#...###.#.###.#",
  "#.###.#.##..#.#.###.#",
  "#.###.#..#..#.#.###.#",
  "#.....#.#..#..#.....#",
  "#######.#.#.#.#######",
  ".........#...........",
  "#####.###..#.#.#.#.#.",
  ".##.##.#..#########.#",
  "#.###.#.#...#.#..###.",
  "........#.####...###.",
  ".##.#.#.#...#.####.##",
  "........##..##.##.#.#",
  "#######.#..#.##..#.#.",
  "#.....#..#......####.",
  "#.###.#.#.##.....#..#",
  "#.###.#.#########.#..",
  "#.###.#.###.#.#..#...",
  "#.....#.##.####..##..",
  "#######.##..#..#...#.",
];

const drawing = (rows) => rows.map((line) => line.map((dark) => (dark ? "#" : ".")).join(""));

export function a_text_becomes_the_squares_that_readers_know() {
  equal(drawing(qr("messaging")), SMALL);
}

export function longer_texts_need_more_squares() {
  for (const [length, side] of [[17, 21], [18, 25], [106, 37], [107, 41], [230, 53], [231, 57], [858, 97]]) {
    const rows = qr("a".repeat(length));
    equal([rows.length, rows.every((line) => line.length === side)], [side, true]);
  }
  equal(qr("a".repeat(859)), null);
  holds(qr("ä".repeat(9)).length === 25, "octets count, not characters");
}
