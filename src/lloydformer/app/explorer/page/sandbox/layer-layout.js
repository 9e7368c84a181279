// Where the boxes of the layer stand between the rail of the points (left) and that of the centers (right).
import { headWords } from "./words.js";

export const WIDTH = 440;
export const RAILS = { encoder: 24, decoder: WIDTH - 24 };
export const COPIES = { encoder: 48, decoder: WIDTH - 48 };
export const BOX = { left: 72, right: WIDTH - 72, height: 72 };
export const [THUMB, PILL] = [54, 212];
const [TOP, GAP, BETWEEN, SMALL] = [50, 8, 12, 25];

/** The groups of heads that read the same tokens: encoder, affinity, decoder. */
function groups(names) {
  const of = (test) => names.filter(test);
  return [
    of((name) => name.startsWith("encoder")),
    of((name) => name.startsWith("affinity")),
    of((name) => name.startsWith("decoder")),
  ].filter((group) => group.length);
}

/** Places of everything: {boxes, taps, small, height}. */
export function layout(names) {
  let y = TOP;
  const taps = [];
  const boxes = groups(names).flatMap((group) => {
    const { side } = headWords(group[0]);
    taps.push({ side, from: y, to: y + 14 + (group.length - 1) * (BOX.height + GAP) + 20 });
    y += 14;
    const placed = group.map((name, i) => {
      const box = {
        name,
        ...headWords(name),
        top: y,
        input: y + 20,
        output: y + BOX.height - 18,
        last: i === group.length - 1,
      };
      y += BOX.height + GAP;
      return box;
    });
    y += BETWEEN - GAP;
    return placed;
  });
  const small = ["norm", "feedforward"].map((slot) => {
    const box = { slot, top: y, input: y + 8, output: y + SMALL - 8, height: SMALL };
    y += SMALL + 6;
    return box;
  });
  return { boxes, taps, small, height: y + 20 };
}
