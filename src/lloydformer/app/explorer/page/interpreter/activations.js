/**
 * Activations: from the scores of a query to the weights of the keys.
 *
 * Each has `check` (refuse wrong parameters), `weigh` (one query: its scores, and what else it may
 * use) or `all` (all queries), and `lowering` (by how much scores of other clusters are lowered).
 */

import { DENSE } from "./activations/dense.js";
import { HARD } from "./activations/hard.js";
import { RANKED } from "./activations/ranked.js";
import { SPARSE } from "./activations/sparse.js";
import { byRows, refuse } from "./activations/weights.js";
import { Matrix } from "./matrix.js";
import { Refusal, require, requirePositive } from "./refusal.js";

/**
 * What an activation may use in addition to the scores.
 * @typedef {object} Context
 * @property {Matrix} gap scores lower than the best by more than this are other clusters'
 * @property {Matrix} tolerance uncertainty of the scores
 * @property {Matrix | null} logScores logarithms of the scores
 * @property {((scores: Matrix) => Matrix) | null} noise Gumbel noise of the shape of the scores
 */

/** The context that has nothing in addition. @type {Context} */
export const NOTHING = {
  gap: Matrix.filled(1, 1, Infinity),
  tolerance: new Matrix(1, 1),
  logScores: null,
  noise: null,
};

/** The weights of all keys for all queries. */
export function weigh(part, scores, context) {
  const activation = ACTIVATIONS[part.part];
  if (activation.all) return activation.all(part, scores, context);
  return byRows(scores, (row, i) => activation.weigh(part, row, context, i));
}

/** The activation of the forward pass. */
export function forwardOf(part) {
  return part.part === "StraightThrough" ? part.activation : part;
}

export const ACTIVATIONS = {
  ...DENSE,
  ...HARD,
  ...RANKED,
  Lots: {
    check({ power, choice }) {
      requirePositive("power", power);
      require(["LimitingSoftmax", "Ranked"].includes(choice.part), "choice", choice,
        'pass LimitingSoftmax("first") or Ranked()');
    },
    all({ power, choice }, scores, context) {
      if (!context.noise) {
        throw new Refusal("seed: found None; this attention draws noise, pass an integer seed");
      }
      const noise = context.noise(scores);
      return weigh(choice, scores.map((a, at) => power * Math.log(a) + noise.data[at]), context);
    },
    lowering: refuse("activation: Lots needs non-negative scores; use Gumbel"),
  },
  ...SPARSE,
  StraightThrough: {
    check() {},
    all: (part, scores, context) => weigh(part.activation, scores, context),
    lowering: (part, reach) => ACTIVATIONS[part.activation.part].lowering(part.activation, reach),
  },
};
