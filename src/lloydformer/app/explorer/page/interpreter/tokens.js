/** Tokens: named subspaces, how points and centers are embedded, and the codes of clusters. */

import { Matrix, product } from "./matrix.js";

/** The codes of clusters: their number of dimensions, and all codes as rows. */
export const CODES = {
  OneHot: { size: (k) => k, table: (k) => Matrix.identity(k) },
  Binary: {
    size: (k) => Math.max(1, Math.ceil(Math.log2(k))),
    table(k) {
      const table = new Matrix(k, this.size(k));
      for (let j = 0; j < k; j++) {
        for (let m = 0; m < table.cols; m++) table.data[j * table.cols + m] = (j >> m) & 1 ? 1 : -1;
      }
      return table;
    },
  },
};

const ONE_DIMENSION = ["squared_norm", "half", "nearest", "second"];

/** A token space: an ordered direct sum of subspaces. No other file counts columns. */
export class Space {
  /** @param {[string, number][]} sizes names and dimensions of the subspaces, in order */
  constructor(sizes) {
    this.spans = new Map();
    this.dim = 0;
    for (const [name, size] of sizes) {
      this.spans.set(name, [this.dim, this.dim + size]);
      this.dim += size;
    }
  }

  /** The first column of a subspace, and the column after its last. */
  span(name) {
    return this.spans.get(name);
  }

  read(tokens, name) {
    const [start, stop] = this.span(name);
    const part = new Matrix(tokens.rows, stop - start);
    for (let i = 0; i < tokens.rows; i++) part.row(i).set(tokens.row(i).subarray(start, stop));
    return part;
  }

  /** New tokens with one part replaced. */
  write(tokens, name, part) {
    const out = new Matrix(tokens.rows, tokens.cols, tokens.data.slice());
    for (let i = 0; i < tokens.rows; i++) out.row(i).set(part.row(i), this.span(name)[0]);
    return out;
  }
}

/** The token space of a recipe for d features and k clusters. */
export function spaceOf(tokens, nFeatures, nClusters) {
  const size = (name) => {
    if (name === "position") return nFeatures;
    if (name === "assignment") return CODES[tokens.codes.part].size(nClusters);
    return ONE_DIMENSION.includes(name) ? 1 : nClusters;
  };
  return new Space(tokens.subspaces.map(({ name }) => [name, size(name)]));
}

/** X: positions and, at first, no assignment. */
export function encoderTokens(tokens, space, points, nClusters) {
  const codes = CODES[tokens.codes.part].table(nClusters);
  const assigned = new Matrix(points.rows, nClusters);
  return embed(space, points, product(assigned, codes), assigned, 0);
}

/** C: positions, and each center's own code. */
export function decoderTokens(tokens, space, centers) {
  const k = centers.rows;
  return embed(space, centers, CODES[tokens.codes.part].table(k), Matrix.identity(k), 1);
}

function embed(space, positions, codes, affinities, constant) {
  const n = positions.rows;
  const parts = {
    position: () => positions,
    squared_norm: () => squaredNorms(positions),
    half: () => Matrix.filled(n, 1, -0.5),
    nearest: () => Matrix.filled(n, 1, constant),
    second: () => Matrix.filled(n, 1, constant),
    assignment: () => codes,
  };
  let tokens = new Matrix(n, space.dim);
  for (const name of space.spans.keys()) {
    tokens = space.write(tokens, name, parts[name] ? parts[name]() : affinities);
  }
  return tokens;
}

function squaredNorms(positions) {
  const norms = new Matrix(positions.rows, 1);
  for (let i = 0; i < positions.rows; i++) {
    norms.data[i] = positions.row(i).reduce((total, x) => total + x * x, 0);
  }
  return norms;
}
