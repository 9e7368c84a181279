/** What stands outside of the transformer: numbers from the data that no attention computes. */

import { forwardOf } from "./activations.js";
import { dotProducts, largest, Matrix, squaredDistances } from "./matrix.js";
import { subspacesOf } from "./projections.js";
import { SCORES, shareTolerance } from "./scores.js";

const SLACK = 1.001;
const LOWEST = -1e300;

/**
 * The squared distances that a separation depends on: of the nearest and of the farthest of a
 * cluster's own points, and which clusters have all points as their own, as empty ones do.
 */
export function reach(space, encoder, decoder) {
  const codes = [space.read(encoder, "assignment"), space.read(decoder, "assignment")];
  const squares = squaredDistances(
    space.read(encoder, "position"), space.read(decoder, "position"));
  const apart = [squaredDistances(...codes), dotProducts(...codes).map((value) => -value)];
  const found = apart.map((away) => ownDistances(away, squares));
  return {
    nearest: SLACK * largest(found.flatMap((each) => each.near)),
    farthest: SLACK * largest(found.flatMap((each) => each.far)),
    everyone: found[0].everyone,
  };
}

/** For each cluster: squared distances of its nearest and farthest own point; are all its own? */
function ownDistances(away, squares) {
  const [n, k] = squares.shape;
  const found = { near: [], far: [], everyone: [] };
  for (let j = 0; j < k; j++) {
    const column = Array.from({ length: n }, (_, i) => away.at(i, j));
    const limit = -largest(column.map((value) => -value)) + 1 / (4 * k ** 2);
    const own = column.map((value) => value <= limit);
    const all = own.every(Boolean);
    const counted = (i) => (all ? 0 : squares.at(i, j));
    found.everyone.push(all);
    found.near.push(-largest(own.map((mine, i) => (mine ? -counted(i) : -Infinity))));
    found.far.push(largest(own.map((mine, i) => (mine ? counted(i) : 0))));
  }
  return found;
}

/** How uncertain the scores of a head are, as a function; null if they are compared exactly. */
export function measureOf(slot, head) {
  const activation = forwardOf(head.activation);
  if (activation.part !== "LimitingSoftmax" || activation.ties === "first") return null;
  if (slot === "decoder_cross" && comparesCodes(head)) {
    return (head, queries) => shareTolerance(queries);
  }
  if (slot !== "encoder_cross") return null;
  return (head, queries, keys) => SCORES[head.score.part].rounding(head.score, queries, keys);
}

/** Whether a head scores by the dot product of codes alone. */
export function comparesCodes(head) {
  const read = subspacesOf(head.query);
  return head.score.part === "DotProduct" && read.size === 1 && read.has("assignment");
}

/** Whether linear attention of the decoder reads the shares of soft-max in the encoder. */
export function keepsLogarithms({ tokens, encoder_cross: assigns, decoder_cross: updates }) {
  return assigns.activation.part === "Softmax" && updates.activation.part === "Linear" &&
    updates.score.part === "DotProduct" && tokens.codes.part === "OneHot" &&
    [assigns.value, updates.query, updates.key].every(isOnAssignment) &&
    !assigns.beside.length && !updates.beside.length;
}

function isOnAssignment({ blocks }) {
  if (blocks?.length !== 1) return false;
  const [{ part, source, target, coefficient, power, number }] = blocks;
  return part === "Block" && source.name === "assignment" && target.name === "assignment" &&
    coefficient === 1 && power === 0 && number === null;
}

/** Logarithms of soft-max shares, (k, n), from scores (n, k). */
export function logShares(scores, gamma) {
  const logs = new Matrix(scores.cols, scores.rows);
  for (let i = 0; i < scores.rows; i++) {
    const row = scores.row(i);
    const top = largest(row);
    const exponents = row.map((score) => gamma * (score - top));
    const mass = Math.log(exponents.reduce((total, e) => total + Math.exp(e), 0));
    exponents.forEach((e, j) => {
      logs.data[j * scores.rows + i] = Math.max(e - mass, LOWEST);
    });
  }
  return logs;
}
