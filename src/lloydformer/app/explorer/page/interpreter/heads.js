/** Heads: a score, an activation, and the projections to query, key and value. */

import { NOTHING, weigh } from "./activations.js";
import { linear, product, sum } from "./matrix.js";
import { matrixOf, numbersOf, powerOf, subspacesOf } from "./projections.js";
import { Refusal, require } from "./refusal.js";
import { SCORES } from "./scores.js";

const SIDES = ["query", "key", "value"];

export function checkHead(head) {
  const { separation: delta, dropout } = head;
  require(delta === null || (delta >= 0 && delta < Infinity), "separation", delta,
    "pass None (chosen from the data) or a finite number, 0 or more");
  require(dropout >= 0 && dropout < 1, "dropout", dropout, "pass a fraction from 0 to below 1");
  require(!numbersOf(head.key).size, "key", head.key, "use numbers in query and value only");
}

/** The names of the subspaces that the projections of a head read or write. */
export function headSubspaces(head) {
  return new Set(SIDES.flatMap((side) => [...subspacesOf(head[side])]));
}

/** The numbers of a modulation that a head uses. */
export function headNumbers(head) {
  const own = head.sharpness ? [head.sharpness] : [];
  return [...own, ...SIDES.flatMap((side) => [...numbersOf(head[side]).values()])];
}

/** Whether a projection of the head depends on the separation. */
export function isSeparated(head) {
  return SIDES.some((side) => powerOf(head[side]) > 0);
}

/** Whether the matrices of the head are learned. */
export function isFree(head) {
  return SIDES.some((side) => head[side].part === "Dense");
}

/** The module of a head, with its matrices. */
export class Attention {
  /**
   * @param {object} head
   * @param {import("./tokens.js").Space} space
   * @param {((head, queries, keys) => Matrix) | null} measure the uncertainty of scores
   * @param {Object<string, Matrix>} weights of learned matrices: "query", "query_bias", ...
   */
  constructor(head, space, measure, weights = {}) {
    Object.assign(this, { head, space, measure });
    this.matrices = {};
    for (const side of SIDES) Object.assign(this.matrices, matrices(side, head[side], space, weights));
  }

  get points() {
    const names = ["queries", "keys", "values", "scores", "attention", "output"];
    return this.measure ? [...names, "tolerance"] : names;
  }

  /**
   * Run the head; every intermediate passes through `point(name, value)`.
   * @returns {{output: Matrix, scores: Matrix}}
   */
  attend(tokens, sources, { context = NOTHING, separation = 0, numbers = null, point }) {
    const { head } = this;
    const asked = this.#multiplied("query", this.#projected("query", tokens, separation), numbers);
    const queries = point("queries", asked);
    const keys = point("keys", this.#projected("key", sources, separation));
    const values = point("values", this.#projected("value", sources, separation));
    const raw = SCORES[head.score.part].scores(head.score, queries, keys);
    const scores = point("scores", sharpened(head, raw, numbers));
    if (this.measure) {
      const tolerance = point("tolerance", this.measure(head, queries, keys));
      context = { ...context, tolerance };
    }
    const attention = point("attention", weigh(head.activation, scores, context));
    const output = this.#multiplied("value", product(attention, values), numbers);
    return { output: point("output", output), scores };
  }

  #projected(side, tokens, separation) {
    const { [side]: matrix, [`${side}_bias`]: bias, [`${side}_separated`]: apart } = this.matrices;
    const out = linear(tokens, matrix, bias);
    if (!apart) return out;
    const factor = separation ** powerOf(this.head[side]);
    return sum(out, linear(tokens, apart).map((value) => factor * value));
  }

  /** Multiply each subspace by its number. */
  #multiplied(side, tokens, numbers) {
    for (const [subspace, number] of numbersOf(this.head[side])) {
      const part = this.space.read(tokens, subspace);
      const scaled = part.map((value, at) => value * valueOf(number, numbers, at, part.cols));
      tokens = this.space.write(tokens, subspace, scaled);
    }
    return tokens;
  }
}

function sharpened(head, scores, numbers) {
  if (!head.sharpness) return scores;
  return scores.map((value, at) => value * valueOf(head.sharpness, numbers, at, scores.cols));
}

/** The value of a number for the query that entry `at` of its matrix belongs to. */
function valueOf({ kind, index }, numbers, at, cols) {
  return numbers.get(kind).spread(Math.floor(at / cols), index);
}

function matrices(side, projection, space, weights) {
  if (projection.part === "Dense") return learned(side, projection, weights);
  const found = { [side]: matrixOf(projection, space) };
  if (powerOf(projection)) found[`${side}_separated`] = matrixOf(projection, space, true);
  return found;
}

function learned(side, projection, weights) {
  const names = projection.bias ? [side, `${side}_bias`] : [side];
  for (const name of names) {
    if (!weights[name]) throw new Refusal(`weights: found no ${name}; a learned head needs it`);
  }
  return Object.fromEntries(names.map((name) => [name, weights[name]]));
}
