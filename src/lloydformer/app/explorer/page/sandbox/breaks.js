// What is broken on purpose: heads switched off, evened or frozen, subspaces erased, attention set by hand.
// Each is an intervention of the interpreter (interventions.js), written as JSON.
import { headWords, subspaceWords } from "./words.js";

const everywhere = (name) => `layers.*.${name}`;

export const switchedOff = (head) => ({ kind: "ablate", name: everywhere(`${head}.output`) });
export const erased = (side, subspace) => ({
  kind: "ablate",
  name: everywhere(`${side}_tokens`),
  subspace,
});
export const frozen = (head, layer) => ({
  kind: "freeze",
  name: everywhere(`${head}.attention`),
  layer,
});

/** All keys with the same weight, in every layer. */
export const evened = (head, { rows, cols }) => ({
  kind: "set",
  name: everywhere(`${head}.attention`),
  rows: Array.from({ length: rows }, () => new Array(cols).fill(1 / cols)),
});

/** The attention of one layer, with one row that looks at one key only. */
export function setByHand(head, layer, attention, row, column) {
  const rows = Array.from({ length: attention.rows }, (_, i) => [
    ...attention.data.subarray(i * attention.cols, (i + 1) * attention.cols),
  ]);
  rows[row] = rows[row].map((_, j) => (j === column ? 1 : 0));
  return { kind: "set", name: `layers.${layer}.${head}.attention`, rows };
}

/** "layers.*.encoder_self.output" -> {head: "encoder_self", layer: null}; tokens have no head. */
export function targetOf({ name }) {
  const [, layer, part] = name.match(/^layers\.(\*|\d+)\.(.*)$/) ?? [null, "*", ""];
  const head = part.includes(".") ? part.split(".")[0] : null;
  return { head, layer: layer === "*" ? null : Number(layer), side: part.replace("_tokens", "") };
}

export const sameBreak = (a, b) =>
  a.kind === b.kind && a.name === b.name && a.subspace === b.subspace;

/** What is done to a head as a whole: "off", "even", "freeze", or null. */
export function breakOf(breaks, head) {
  const mine = breaks.find((one) => targetOf(one).head === head && targetOf(one).layer === null);
  return mine ? { ablate: "off", set: "even", freeze: "freeze" }[mine.kind] : null;
}

export const brokenHeads = (breaks) =>
  new Set(breaks.map((one) => targetOf(one).head).filter(Boolean));

/** Those that still make sense for a circuit and its trace. */
export function fitting(breaks, circuit, trace) {
  const names = new Set(trace.names());
  return breaks.filter((one) => {
    const name = one.name.replace("*", "0");
    if (!names.has(name)) return false;
    if (one.subspace && !circuit.subspaces.some((space) => space.name === one.subspace))
      return false;
    if (one.kind === "freeze") return one.layer < trace.nLayers;
    if (one.kind !== "set") return true;
    const { rows, cols } = trace.get(name);
    return (
      Array.isArray(one.rows) &&
      one.rows.length === rows &&
      one.rows.every((row) => row.length === cols)
    );
  });
}

/** A sentence for a broken thing. */
export function breakWords(one) {
  const { head, layer, side } = targetOf(one);
  const title = head && headWords(head).title;
  if (!head)
    return `${subspaceWords(one.subspace ?? "all")} is erased from the ${side === "encoder" ? "points" : "centers"}`;
  if (one.kind === "ablate") return `${title} is switched off`;
  if (one.kind === "freeze") return `${title} is frozen as in layer ${one.layer + 1}`;
  return layer === null
    ? `${title} asks everyone evenly`
    : `${title} is set by hand in layer ${layer + 1}`;
}
