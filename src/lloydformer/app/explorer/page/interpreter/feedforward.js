/** The quadratic feed-forward network, which updates the squared norm of moved centers. */

import { linear, Matrix } from "./matrix.js";
import { Refusal } from "./refusal.js";
import { pythonText } from "./python_text.js";

/** The subspaces that the network reads or writes. */
export const QUADRATIC_SUBSPACES = ["position", "squared_norm", "half"];

export function checkQuadratic({ unit }) {
  if (!["square", "rectified"].includes(unit)) {
    throw new Refusal(`unit: found ${pythonText(unit)}; pass "square" or "rectified"`);
  }
}

/** N(c) = W2 tau(W1 c) + b, with tau the square, rectified or not. */
export class QuadraticNetwork {
  constructor(network, space) {
    this.rectified = network.unit === "rectified";
    const [start, stop] = space.span("position");
    const width = stop - start;
    const hidden = this.rectified ? 2 * width : width;
    this.inward = new Matrix(hidden, space.dim);
    for (let unit = 0; unit < hidden; unit++) {
      this.inward.data[unit * space.dim + start + (unit % width)] = unit < width ? 1 : -1;
    }
    this.outward = new Matrix(space.dim, hidden);
    this.outward.row(space.span("squared_norm")[0]).fill(1);
    this.bias = new Matrix(1, space.dim);
    this.bias.data[space.span("half")[0]] = -0.5;
  }

  run(tokens, point) {
    const z = linear(tokens, this.inward);
    const units = z.map((value) => (this.rectified && value < 0 ? 0 : value * value));
    return point("output", linear(point("hidden", units), this.outward, this.bias));
  }
}
