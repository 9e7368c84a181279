/** Attention scores: how similar a projected query and a projected key are; larger is better. */

import { dotProducts, Matrix, squaredDistances } from "./matrix.js";

const EPS = Number.EPSILON;

/** Each score: all scores of queries and keys, and an upper bound of their rounding errors. */
export const SCORES = {
  Euclidean: {
    scores(part, queries, keys) {
      const scores = squaredDistances(queries, keys);
      for (let at = 0; at < scores.data.length; at++) scores.data[at] = -scores.data[at];
      return scores;
    },
    rounding(part, queries, keys) {
      const [squares, factor] = [squaredDistances(queries, keys), 8 + Math.sqrt(queries.rows)];
      const [a, b, terms] = [lengths(queries), lengths(keys), liveColumns(queries, keys)];
      return squares.map((square, at) => {
        const length = a[Math.floor(at / keys.rows)] + b[at % keys.rows];
        return EPS * ((terms + 2) * square + factor * Math.sqrt(square) * length);
      });
    },
  },
  DotProduct: {
    scores: (part, queries, keys) => dotProducts(queries, keys),
    rounding(part, queries, keys) {
      const factor = (liveColumns(queries, keys) + 8 + Math.sqrt(queries.rows)) * EPS;
      return dotProducts(queries.map(Math.abs), keys.map(Math.abs)).map((size) => factor * size);
    },
  },
  Scaled: {
    scores: (part, queries, keys) => scaled(SCORES[part.score.part].scores, part, queries, keys),
    rounding: (part, queries, keys) =>
      scaled(SCORES[part.score.part].rounding, part, queries, keys),
  },
};

function scaled(inner, part, queries, keys) {
  const root = Math.sqrt(queries.cols);
  return inner(part.score, queries, keys).map((value) => value / root);
}

function lengths(rows) {
  return Array.from({ length: rows.rows }, (_, i) =>
    Math.sqrt(rows.row(i).reduce((total, x) => total + x * x, 0)));
}

/** The number of columns that are not 0 in all queries and keys. */
function liveColumns(queries, keys) {
  const live = new Set();
  for (const rows of [queries, keys]) {
    rows.data.forEach((value, at) => value !== 0 && live.add(at % rows.cols));
  }
  return live.size;
}

/** 1/(4 k^2): different shares of points, 1/m with m at most k, are 1/k^2 or more apart. */
export function shareTolerance(queries) {
  return Matrix.filled(1, 1, 1 / (4 * queries.rows ** 2));
}
