/** Modulation: the numbers of a symmetric layer, the same in every layer. */

import { Matrix, squaredDistances } from "./matrix.js";
import { Refusal } from "./refusal.js";

const NEAR = 0.01;

/** How many numbers of each kind a modulation sets. */
export function kindsOf(fixed) {
  const [heads, apart] = [fixed.sharpness.length, fixed.apart.length];
  return {
    sharpness: heads, distance: heads, log_belonging: heads, nearest: heads, second: heads,
    stride: heads, belonging: heads ** 2, apart_sharpness: apart, apart, closeness: 1, kept: 1,
  };
}

const FIELDS = [
  "sharpness", "log_belonging", "stride", "belonging", "distance", "nearest", "second",
  "apart_sharpness", "apart",
];

export function checkFixed(fixed) {
  const sizes = kindsOf(fixed);
  for (const name of FIELDS) {
    const found = fixed[name].length;
    if (![0, sizes[name]].includes(found)) {
      throw new Refusal(`${name}: found ${found} numbers; pass ${sizes[name]} or none`);
    }
  }
}

/** Writes the log squared distances to the two nearest centers, and sets the numbers. */
export class FixedNumbers {
  constructor(fixed, space) {
    Object.assign(this, { fixed, space });
  }

  get points() {
    return Object.keys(kindsOf(this.fixed));
  }

  /** @returns {[Matrix, Map<string, Matrix>]} the encoder tokens and the numbers by kind */
  run(encoder, decoder, point) {
    const numbers = this.#numbers();
    const squares = squaredDistances(
      this.space.read(encoder, "position"), this.space.read(decoder, "position"));
    const logs = Array.from({ length: squares.rows }, (_, i) => {
      const near = squares.row(i).slice().sort();
      return [near[0], near[Math.min(1, near.length - 1)]].map((d) => Math.log(d + NEAR));
    });
    ["nearest", "second"].forEach((name, at) => {
      encoder = this.space.write(encoder, name, Matrix.fromRows(logs.map((row) => [row[at]]), 1));
    });
    return [encoder, new Map(numbers.map(([kind, value]) => [kind, point(kind, value)]))];
  }

  #numbers() {
    const sizes = kindsOf(this.fixed);
    const found = FIELDS.map((name) => {
      const values = this.fixed[name];
      return [name, new Matrix(1, sizes[name],
        Float64Array.from({ length: sizes[name] }, (_, i) => values[i] ?? 0))];
    });
    const total = (name) => Object.fromEntries(found)[name].data.reduce((a, b) => a + b, 0);
    return [...found, ["closeness", Matrix.filled(1, 1, 1)],
      ["kept", Matrix.filled(1, 1, total("apart") - total("stride"))]];
  }
}
