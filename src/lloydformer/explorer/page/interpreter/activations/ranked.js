/** Activations by rank, and the first of nearly equal keys. */

import { largest } from "../matrix.js";
import { Refusal, require } from "../refusal.js";
import { best, byRows } from "./weights.js";

export const RANKED = {
  Ranked: {
    check({ rank, in_order }) {
      require(rank === null || (Number.isInteger(rank) && rank >= 0), "rank", rank,
        "pass None (the number of the query) or an integer, 0 or more", false);
      require(rank === null || !in_order, "in_order", in_order, "in_order needs rank=None");
    },
    all: rankedWeights,
    lowering: (part, reach) => reach.farthest,
  },
  FirstOfEquals: {
    check: ({ within }) =>
      require(within >= 0 && within < 1, "within", within, "pass a fraction from 0 to below 1"),
    weigh({ within }, scores) {
      const top = largest(scores);
      return best(scores.map((a) => (a >= top - within * Math.abs(top) ? 1 : 0)));
    },
    lowering: (part, reach) => reach.farthest,
  },
};

/** The order of two numbers; not-a-number is the largest. */
function compare(a, b) {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return (a > b) - (a < b);
}

function rankedWeights({ rank, in_order }, scores) {
  const last = rank === null ? scores.rows - 1 : rank;
  if (last >= scores.cols) {
    throw new Refusal(
      `rank: found ${last} for ${scores.cols} keys; the last one is ${scores.cols - 1}`);
  }
  return byRows(scores, (row, i) => {
    let order = Array.from(row.keys()).sort((a, b) => compare(row[b], row[a]) || a - b);
    if (in_order) order = order.slice(0, scores.rows).sort((a, b) => a - b);
    const weights = new Float64Array(row.length);
    weights[order[rank === null ? i : rank]] = 1;
    return weights;
  });
}
