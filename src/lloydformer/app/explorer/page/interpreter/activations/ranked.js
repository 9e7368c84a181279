/** Activations by rank, and the first of nearly equal keys. */

import { descending, largest } from "../matrix.js";
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

function rankedWeights({ rank, in_order }, scores) {
  const last = rank === null ? scores.rows - 1 : rank;
  if (last >= scores.cols) {
    throw new Refusal(
      `rank: found ${last} for ${scores.cols} keys; the last one is ${scores.cols - 1}`);
  }
  return byRows(scores, (row, i) => {
    const weights = new Float64Array(row.length);
    const keys = in_order ? [...Array(scores.rows).keys()].map((r) => keyOfRank(row, r)) : [];
    const key = in_order ? keys.sort((a, b) => a - b)[i] : keyOfRank(row, rank ?? i);
    weights[key] = 1;
    return weights;
  });
}

/** The key of a rank; among equal ones the first ranks higher. Not-a-number is the largest. */
function keyOfRank(row, rank) {
  const ordered = descending(row.map((a) => a + 0)); // -0 is 0
  const same = (a) => a === ordered[rank] || (Number.isNaN(a) && Number.isNaN(ordered[rank]));
  let equalsBefore = rank - ordered.findIndex(same);
  return row.findIndex((a) => same(a) && equalsBefore-- === 0);
}
