/**
 * The lines of the algorithm, and whether a layer still does what each says: measured.
 *
 * Every line is measured from what the layer itself did in the lines before it, so that one broken
 * line does not break those after it.
 */

import { Lloyd, Medoids, Robust, Soft, Spherical, Trimmed } from "./algorithms.js";
import { Matrix, product } from "./matrix.js";
import { squared } from "./members.js";
import { CODES } from "./tokens.js";

const EXACT = 1e-9;

/**
 * @typedef {object} Line
 * @property {string} id
 * @property {string} slot the part of the layer that does it: "encoder_cross", "norm", ...
 * @property {string} text what it says
 * @property {number} off how far the numbers are from it; shares, or parts of the data's spread
 * @property {number} count how many points or centers are off
 * @property {boolean} holds
 */

/**
 * The lines of the algorithm in layer t.
 * @param {import("./circuit.js").Circuit} circuit
 * @param {import("./trace.js").Trace} trace
 * @param {number} t
 * @param {?object} algorithm of `algorithmOf`; of null, only lines that all recipes share
 * @returns {Line[]}
 */
export function linesOf(circuit, trace, t, algorithm) {
  const layer = new MeasuredLayer(circuit, trace, t);
  const lines = [
    ["points", "encoder_self", "Points stay where they are.", layer.pointsMoved()],
    ["forget_code", "encoder_self", "Each point forgets its old cluster.",
      layer.left("encoder_residual", ["assignment", "affinity"])],
    ["assign", "encoder_cross", algorithm && assigning(algorithm), layer.assigned(algorithm)],
    ["write_code", "encoder_cross", "Each point writes down its cluster.", layer.codesWritten()],
    ["forget_place", "decoder_self", "Each center forgets its old place.",
      layer.left("decoder_residual", ["position", "squared_norm", "half"])],
    ["weigh", "decoder_cross", algorithm && weighing(algorithm), layer.weighed(algorithm)],
    ["move", "decoder_cross", moving(circuit), layer.placed()],
    ["names", "decoder_self", "Each center keeps its name.", layer.namesKept()],
    ["norm", "norm", circuit.schedule[0].norm && "Each center has length 1.", layer.lengths()],
    ["lift", "feedforward", layer.has("squared_norm") && "Squared norms belong to the new places.",
      layer.lifted()],
  ];
  return lines.filter(([, , text]) => text).map(([id, slot, text, off]) => ({
    id, slot, text, ...summary(off),
  }));
}

function summary(off) {
  const worst = off.reduce((a, b) => (b > a || Number.isNaN(b) ? b : a), 0);
  const count = off.filter((value) => !(value <= EXACT)).length;
  return { off: worst, count, holds: count === 0 };
}

function assigning(algorithm) {
  if (algorithm instanceof Soft) return "Share each point among the centers, near ones most.";
  if (algorithm instanceof Spherical) return "Assign each point to the center in its direction.";
  return "Assign each point to its nearest center.";
}

function weighing(algorithm) {
  if (algorithm instanceof Soft) return "Each center weighs the points by their shares.";
  if (algorithm instanceof Medoids) return "Each center draws one of its points.";
  if (algorithm instanceof Robust) return "Each center weighs its points, near ones most.";
  if (algorithm instanceof Trimmed) return "Each center drops its farthest points.";
  return "Each center looks at its own points, all alike.";
}

function moving(circuit) {
  return circuit.schedule[0].norm ? "Each center turns to the mean of what it looks at."
    : "Each center moves to the mean of what it looks at.";
}

/** A layer of a trace, with the measures of the lines: a number for each point or center. */
class MeasuredLayer {
  constructor(circuit, trace, t) {
    Object.assign(this, { circuit, trace, t, space: circuit.space });
    this.points = trace.points.toRows();
    this.spread = spreadOf(this.points);
  }

  has(subspace) {
    return this.space.spans.has(subspace);
  }

  #tokens(name) {
    return this.trace.get(`layers.${this.t}.${name}`);
  }

  #read(name, subspace) {
    return this.space.read(this.#tokens(name), subspace);
  }

  pointsMoved() {
    return distances(this.#read("encoder_next", "position"),
      this.#read("encoder_tokens", "position")).map((off) => off / this.spread);
  }

  /** What is left in these subspaces, of those that tokens have and cross-attention writes. */
  left(name, subspaces) {
    const parts = subspaces.filter((one) => this.has(one)).map((one) => this.#read(name, one));
    return Array.from({ length: parts[0].rows }, (_, i) =>
      Math.max(...parts.flatMap((part) => Array.from(part.row(i), Math.abs))));
  }

  /** Differences of shares; 0 for points that are equally near to two centers but for rounding. */
  assigned(algorithm) {
    if (!algorithm) return [];
    const centers = this.trace.centers[this.t].map((row) => [...row]);
    const wanted = algorithm.assign(this.points.map((row) => [...row]), centers);
    const isTie = (i) => algorithm instanceof Lloyd && this.#isTie(this.points[i], centers);
    return this.trace.assignments[this.t].map((row, i) => (isTie(i) ? 0 : largestGap(row, wanted[i])));
  }

  #isTie(point, centers) {
    const [first, second] = centers.map((c) => squared(point, c)).sort((a, b) => a - b);
    return second - first < 1e-12 * this.spread ** 2;
  }

  codesWritten() {
    const shares = Matrix.fromRows(this.trace.assignments[this.t]);
    const codes = CODES[this.circuit.tokens.codes.part].table(shares.cols);
    return gaps(this.#read("encoder_next", "assignment"), product(shares, codes));
  }

  /** Differences of weights from those of the algorithm for the codes that points wrote down. */
  weighed(algorithm) {
    if (!algorithm) return [];
    const plain = (rows) => rows.map((row) => [...row]);
    const coded = this.circuit.tokens.codes.part === "OneHot"; // then codes are shares
    const written = coded ? this.#read("encoder_next", "assignment").toRows()
      : this.trace.assignments[this.t];
    const centers = this.trace.centers[this.t];
    const wanted = algorithm.weigh(plain(this.points), plain(centers), plain(written), this.t);
    return this.#weights().map((row, j) => largestGap(row, wanted[j]));
  }

  #weights() {
    return this.#tokens("decoder_cross.attention").toRows();
  }

  placed() {
    const { norm } = this.circuit.schedule[0];
    const means = this.#weights().map((weights) => {
      const sums = this.points[0].map((_, j) =>
        weights.reduce((sum, w, i) => sum + w * this.points[i][j], 0));
      const length = norm ? Math.hypot(...sums) : 1;
      return sums.map((value) => value / length);
    });
    const found = this.trace.centers[this.t + 1];
    return found.map((row, j) => Math.sqrt(squared([...row], means[j])) / this.spread);
  }

  namesKept() {
    return gaps(this.#read("decoder_next", "assignment"), this.#read("decoder_tokens", "assignment"));
  }

  lengths() {
    return this.trace.centers[this.t + 1].map((row) => Math.abs(Math.hypot(...row) - 1));
  }

  lifted() {
    if (!this.has("squared_norm")) return [];
    const [places, norms] = ["position", "squared_norm"].map((s) => this.#read("decoder_next", s));
    return places.toRows().map((row, j) =>
      Math.abs(row.reduce((sum, x) => sum + x * x, 0) - norms.data[j]) / this.spread ** 2);
  }
}

/** The distance from the mean to the farthest point; 1 if all points coincide. */
function spreadOf(points) {
  const mean = points[0].map((_, j) =>
    points.reduce((sum, row) => sum + row[j], 0) / points.length);
  return Math.sqrt(Math.max(...points.map((row) => squared([...row], mean)))) || 1;
}

const distances = (a, b) => a.toRows().map((row, i) => Math.sqrt(squared([...row], b.row(i))));
const gaps = (a, b) => a.toRows().map((row, i) => largestGap(row, b.row(i)));

function largestGap(a, b) {
  return Math.max(...Array.from(a, (value, j) => Math.abs(value - b[j])));
}
