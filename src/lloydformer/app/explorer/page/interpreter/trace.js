/**
 * The trace: centers and assignments of every layer, and all intermediates by name.
 *
 * Only the tokens before each layer are stored. An intermediate is computed again when somebody
 * asks for it: the matrices of self-attention are n x n, and most are never looked at.
 */

import { indexOfLargest, squaredDistances, Matrix } from "./matrix.js";
import { quoted } from "./python_text.js";
import { Refusal } from "./refusal.js";

const N_REMEMBERED = 2; // layers whose intermediates stay in memory

export class Trace {
  #layers; // for each: {layer, encoder, decoder, noise}
  #patches;
  #names;
  #remembered = new Map();

  constructor({ points, centers, assignments, origin, layers, patches, names }) {
    /** @type {Matrix} the points */
    this.points = points;
    /** T + 1 times k rows: the centers before each layer and after the last one. */
    this.centers = centers.map((each) => each.toRows());
    /** T times n rows: the attention that assigns points to centers. */
    this.assignments = assignments.map((each) => each.toRows());
    /** T times n: the cluster of each point, the first of its largest assignments. */
    this.labels = this.assignments.map((rows) => Int32Array.from(rows, indexOfLargest));
    /** T + 1 numbers: the k-means objective of the centers. */
    this.objective = Float64Array.from(centers, (each) => objectiveOf(points, each));
    /** The vector that the circuit subtracted from points and centers. */
    this.origin = origin;
    /** What Python warns of, or null. */
    this.warning = warningOf(centers);
    this.#layers = layers;
    this.#patches = patches;
    this.#names = names;
  }

  get nLayers() {
    return this.#layers.length;
  }

  /** The names of all intermediates of the run. @returns {string[]} */
  names() {
    return this.#names;
  }

  /** An intermediate by its name. @returns {Matrix} @throws {Refusal} if there is none */
  get(name) {
    if (!this.#names.includes(name)) {
      throw new Refusal(`${quoted(name)} is not an intermediate of this circuit`);
    }
    const [, number, point] = name.match(/^layers\.(\d+)\.(.*)$/);
    return this.#intermediates(Number(number)).get(point);
  }

  #intermediates(number) {
    if (!this.#remembered.has(number)) {
      const kept = new Map();
      runLayer(this.#layers[number], number, this.#patches, (name, value) => kept.set(name, value));
      if (this.#remembered.size >= N_REMEMBERED) {
        this.#remembered.delete(this.#remembered.keys().next().value);
      }
      this.#remembered.set(number, kept);
    }
    return this.#remembered.get(number);
  }
}

/** Run one layer with its patches; `see` is told every intermediate. */
export function runLayer({ layer, encoder, decoder, noise }, number, patches, see) {
  const here = patches.length ? patches : [];
  const point = (name, value) => {
    for (const patch of here) {
      const full = `layers.${number}.${name}`;
      if (patch.matches(full)) value = patch.apply(full, value);
    }
    see(name, value);
    return value;
  };
  return layer.run(encoder, decoder, { noise, point });
}

/** The sum of the squared distances of the points to their nearest centers. */
export function objectiveOf(points, centers) {
  const squares = squaredDistances(points, centers);
  let total = 0;
  for (let i = 0; i < squares.rows; i++) total += Math.min(...squares.row(i));
  return total;
}

function warningOf(centers) {
  const wrong = centers.findIndex((each) => !each.finite);
  return wrong < 0 ? null :
    `layer ${wrong - 1}: a center is not a number. Its weights are all zero (0/0): linear ` +
      "attention on a cluster without weight, or a norm of a zero vector";
}
