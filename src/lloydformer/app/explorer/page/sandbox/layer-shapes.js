// The shapes of the layer's figure: rails, wires, boxes of heads, norm and network.
import { s } from "../dom.js";
import { BOX, COPIES, PILL, RAILS, THUMB, WIDTH } from "./layer-layout.js";
import { activationWords, scoreWords, subspaceWords } from "./words.js";

const NAMES = { norm: "norm", feedforward: "network" };
const PARTS = { RMSNorm: "RMS norm", LayerNorm: "layer norm", Quadratic: "squares the position" };
const MIDDLE = { x: WIDTH / 2, "text-anchor": "middle", class: "note" };

const wire = (x1, y, x2, side, more = "") =>
  s("path", { class: `wire ${side}${more}`, d: `M${x1},${y}H${x2}` });

function arrow(x1, y, x2, side) {
  const line = wire(x1, y, x2, side);
  line.setAttribute("marker-end", `url(#tip-${side})`);
  return line;
}

const dot = (x, y, side) => s("circle", { class: `dot ${side}`, cx: x, cy: y, r: 3.2 });
const caret = (x, y) => s("path", { class: "caret", d: `M${x},${y}l4,5l4,-5` });

function plus(x, y, side) {
  const cross = s("path", { d: "M-4.5,0H4.5M0,-4.5V4.5" });
  return s(
    "g",
    { class: `plus ${side}`, transform: `translate(${x},${y})` },
    s("circle", { r: 8 }),
    cross,
  );
}

/** The heads of arrows. */
export function tips() {
  const size = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7 };
  const marker = (side) =>
    s(
      "marker",
      { id: `tip-${side}`, ...size, orient: "auto", markerUnits: "userSpaceOnUse" },
      s("path", { class: `tip ${side}`, d: "M0,0.5L8,4L0,7.5Z" }),
    );
  return s("defs", {}, ["encoder", "decoder"].map(marker));
}

/** The streams of points and centers, with the subspaces of their tokens above. */
export function rails(plan, { tokens: { subspaces } }) {
  const names = subspaces.map(({ symbol, name }) => `${symbol} ${subspaceWords(name)}`).join("   ");
  return [
    rail("encoder", "points", plan, subspaces),
    rail("decoder", "centers", plan, subspaces),
    s("text", { ...MIDDLE, y: 13 }, "one layer = one iteration"),
    s("text", { ...MIDDLE, y: 32 }, names.length < 44 ? names : ""),
  ];
}

function rail(side, words, plan, subspaces) {
  const [x, bottom, left] = [RAILS[side], plan.height - 14, side === "encoder"];
  const chips = subspaces.map(({ symbol }, i) => {
    const at = left ? 2 + 26 * i : WIDTH - 26 * (subspaces.length - i);
    const text = s("text", { x: 12, y: 14 }, !left && symbol === "x" ? "c" : symbol);
    return s(
      "g",
      { transform: `translate(${at},20)`, class: `chip ${side}` },
      s("rect", { width: 24, height: 20, rx: 4 }),
      text,
    );
  });
  return s(
    "g",
    {},
    s("path", { class: `rail ${side}`, d: `M${x},40V${bottom}` }),
    s("path", { class: `tip ${side}`, d: `M${x - 6},${bottom}h12l-6,11z` }),
    s(
      "text",
      {
        class: `rail-name ${side}`,
        x: left ? 2 : WIDTH - 2,
        y: 13,
        "text-anchor": left ? "start" : "end",
      },
      words,
    ),
    chips,
  );
}

/** The copies of the tokens that all heads of a group read, before anything is added. */
export function taps(plan) {
  return plan.taps.map(({ side, from, to }) =>
    s(
      "g",
      {},
      s("path", { class: `wire ${side}`, d: `M${RAILS[side]},${from}H${COPIES[side]}V${to}` }),
      dot(RAILS[side], from, side),
    ),
  );
}

/** The box of a head: its group, and what changes in it: thumb, marks, fails. */
export function headBox({ side, asks, answers, title, line, top, input, output }, head) {
  const [near, far, other] =
    side === "encoder" ? [BOX.left, BOX.right, "decoder"] : [BOX.right, BOX.left, "encoder"];
  const place = { x: BOX.right - THUMB - 10, y: top + 9, width: THUMB, height: THUMB };
  const marks = s("g", { class: "thumb-marks" });
  const thumb = s("image", { ...place, preserveAspectRatio: "none" });
  const fails = s("text", { class: "fails", x: place.x - 8, y: top + 19 });
  const text = (y, words, cls) => s("text", { x: BOX.left + 12, y: top + y, class: cls }, words);
  const isSelf = asks === answers;
  const group = s(
    "g",
    { class: `head ${isSelf ? "self" : "cross"}` },
    arrow(COPIES[side], input, near, side),
    wire(near, output, RAILS[side], side, " out"),
    plus(RAILS[side], output, side),
    isSelf ? null : [arrow(RAILS[other], input, far, other), dot(RAILS[other], input, other)],
    s("rect", {
      class: "body",
      x: BOX.left,
      y: top,
      width: BOX.right - BOX.left,
      height: BOX.height,
      rx: 9,
    }),
    text(19, title, "title"),
    text(35, line, "line"),
    s("rect", { class: "pill", x: BOX.left + 8, y: top + 44, width: PILL, height: 21, rx: 6 }),
    text(59, `${scoreWords(head.score)} → ${activationWords(head.activation)}`, "part"),
    caret(BOX.left + PILL - 7, top + 52),
    s("rect", {
      class: "thumb",
      x: place.x - 0.5,
      y: place.y - 0.5,
      width: THUMB + 1,
      height: THUMB + 1,
    }),
    thumb,
    marks,
    fails,
  );
  return { group, thumb, marks, fails, place, asks, answers };
}

/** The box of the norm, which replaces its tokens, or of the network, which adds to them. */
export function smallBox({ slot, top, input, output, height }, part) {
  const [rail, edge] = [RAILS.decoder, BOX.right];
  const wires = part && [
    arrow(rail, input, edge, "decoder"),
    wire(edge, output, rail, "decoder", slot === "norm" ? "" : " out"),
    slot === "norm"
      ? s("path", { class: "cut", d: `M${rail},${input + 2}V${output - 2}` })
      : plus(rail, output, "decoder"),
  ];
  return s(
    "g",
    { class: `small${part ? "" : " empty"}` },
    wires,
    s("rect", { class: "body", x: BOX.left, y: top, width: edge - BOX.left, height, rx: 8 }),
    s("text", { class: "title", x: BOX.left + 12, y: top + 17 }, NAMES[slot]),
    s(
      "text",
      { class: "part", x: BOX.left + 84, y: top + 17 },
      part ? (PARTS[part.part] ?? part.part) : "none",
    ),
    caret(edge - 18, top + 10),
  );
}

/** Frames around the rows and columns of a thumbnail that are looked at; `size`: its matrix. */
export function thumbMarks({ place, asks, answers }, { rows, cols }, hover) {
  const row = (i) =>
    s("rect", { x: place.x, y: place.y + (THUMB * i) / rows, width: THUMB, height: THUMB / rows });
  const column = (j) =>
    s("rect", { x: place.x + (THUMB * j) / cols, y: place.y, width: THUMB / cols, height: THUMB });
  return [
    ...hover
      .of(asks)
      .filter((i) => i < rows)
      .map(row),
    ...hover
      .of(answers)
      .filter((j) => j < cols)
      .map(column),
  ];
}
