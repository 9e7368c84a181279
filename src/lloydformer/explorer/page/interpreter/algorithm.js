/**
 * The plain algorithms, one iteration in three steps: assign points, weigh them, place centers.
 *
 * As lloydformer.algorithms in Python, and without code of the circuits except the noise.
 */

import { identify } from "./identify.js";
import { gumbel } from "./noise.js";

/** Separation of medoids if the recipe leaves it open: no point of another cluster is drawn. */
const NEVER = 1e8;

/**
 * The plain algorithm of a recipe with its parameters, or null if the parts are new.
 * @param {object} recipe
 * @param {number} seed of the noise, for medoids
 */
export function algorithmOf(recipe, seed = 0) {
  const make = ALGORITHMS[identify(recipe)];
  return make?.({ ...parametersOf(recipe), seed }) ?? null;
}

/** The parameters that the parts of a recipe have. */
export function parametersOf({ encoder_cross: encoder, decoder_cross: decoder }) {
  return {
    ties: encoder.activation.ties,
    gamma: encoder.activation.inverse_temperature ?? decoder.activation.inverse_temperature,
    keep: decoder.activation.keep,
    separation: decoder.separation ?? NEVER,
    normalise: decoder.activation.part,
  };
}

/** Makers of the algorithms, by the name of the recipe. */
const ALGORITHMS = {
  lloyd: ({ ties }) => new Lloyd(ties),
  lloyd_dot: ({ ties }) => new Lloyd(ties),
  lloyd_binary: () => new LloydBinary("first"),
  spherical: ({ ties }) => new Spherical(ties),
  soft: ({ gamma }) => new Soft(gamma),
  soft_dot: ({ gamma }) => new Soft(gamma),
  trimmed: ({ ties, keep }) => new Trimmed(ties, keep),
  robust: (p) => (p.normalise in NORMALISE ? new Robust(p.ties, p.gamma, p.normalise, false) : null),
  robust_lifted: (p) =>
    (p.normalise in NORMALISE ? new Robust(p.ties, p.gamma, p.normalise, true) : null),
  medoids: ({ ties, separation, seed }) => new Medoids(ties, separation, seed),
};

class Algorithm {
  /** The new centers after iteration t. */
  step(points, centers, t = 0) {
    const assignments = this.assign(points, centers);
    return this.place(points, this.weigh(points, centers, assignments, t));
  }

  /** The centers before each iteration and after the last. */
  run(points, centers, nIterations) {
    const history = [centers];
    for (let t = 0; t < nIterations; t++) history.push(this.step(points, history[t], t));
    return history;
  }

  place(points, weights) {
    return weights.map((row) => mean(points, row));
  }
}

/** Assign each point to its nearest center, move each center to the mean of its points. */
export class Lloyd extends Algorithm {
  name = "Lloyd's algorithm";

  constructor(ties = "first") {
    super();
    this.ties = ties;
  }

  assign(points, centers) {
    return points.map((x) => share(centers.map((c) => -squared(x, c)), this.ties));
  }

  weigh(points, centers, assignments) {
    return byCluster(centers, assignments, (shares) => {
      const most = Math.max(...shares);
      return evenly(shares.map((value) => value === most));
    });
  }
}

/** A center without points moves to those whose numbers have the most binary digits of its own. */
export class LloydBinary extends Lloyd {
  weigh(points, centers, assignments) {
    const labels = assignments.map((row) => row.indexOf(Math.max(...row)));
    return centers.map((_, j) => {
      const away = labels.map((label) => countOfOnes(label ^ j));
      return evenly(away.map((value) => value === Math.min(...away)));
    });
  }
}

/** Assign by the largest dot product; centers are directions of the sums. */
export class Spherical extends Lloyd {
  name = "Spherical k-means";

  assign(points, centers) {
    return points.map((x) => share(centers.map((c) => dot(x, c)), this.ties));
  }

  place(points, weights) {
    return super.place(points, weights).map((row) => {
      const length = Math.sqrt(dot(row, row));
      return row.map((value) => value / length);
    });
  }
}

/** Weights are soft-max shares of the points; centers are weighted means. */
export class Soft extends Algorithm {
  name = "Soft k-means";

  constructor(gamma) {
    super();
    this.gamma = gamma;
  }

  assign(points, centers) {
    return this.#logarithms(points, centers).map((row) => row.map(Math.exp));
  }

  weigh(points, centers) {
    const logs = this.#logarithms(points, centers);
    return byCluster(centers, logs, (row) => {
      const top = Math.max(...row);
      return scaled(row.map((value) => Math.exp(value - top)));
    });
  }

  #logarithms(points, centers) {
    return points.map((x) => {
      const exponents = centers.map((c) => -this.gamma * squared(x, c));
      const top = Math.max(...exponents);
      const mass = Math.log(total(exponents.map((e) => Math.exp(e - top))));
      return exponents.map((e) => Math.max(e - top - mass, -1e300));
    });
  }
}

/** Of m points of a cluster those not farther than the ceil(keep m)-th nearest stay. */
export class Trimmed extends Lloyd {
  name = "Trimmed k-means";

  constructor(ties, keep) {
    super(ties);
    this.keep = keep;
  }

  weigh(points, centers, assignments) {
    return members(assignments).map((own, j) => {
      const away = points.map((x) => squared(x, centers[j]));
      const ordered = away.filter((_, i) => own[i]).sort((a, b) => a - b);
      const radius = ordered[Math.ceil(this.keep * ordered.length - 1e-9) - 1];
      return evenly(away.map((value, i) => own[i] && value <= radius));
    });
  }
}

/** Points weigh less the farther they are from their center. */
export class Robust extends Lloyd {
  name = "Robust k-means";

  constructor(ties, gamma, normalise, lifted) {
    super(ties);
    Object.assign(this, { gamma, normalise, lifted });
  }

  weigh(points, centers, assignments) {
    const whose = this.lifted ? largestShares(assignments) : members(assignments);
    return whose.map((own, j) => {
      const indices = [...points.keys()].filter((i) => own[i]);
      const scores = indices.map((i) => -this.gamma * squared(points[i], centers[j]));
      const weights = new Array(points.length).fill(0);
      NORMALISE[this.normalise](scores).forEach((w, at) => {
        weights[indices[at]] = w;
      });
      return weights;
    });
  }
}

/** Each center moves to a randomly drawn point of its cluster. */
export class Medoids extends Lloyd {
  name = "Randomised k-medoids";

  constructor(ties, separation, seed) {
    super(ties);
    Object.assign(this, { separation, seed });
  }

  weigh(points, centers, assignments, t) {
    const noise = gumbel(this.seed, t, "decoder_cross", centers.length, points.length);
    return codeDistances(assignments).map((away, j) => {
      const scores = points.map((x, i) =>
        -squared(x, centers[j]) - this.separation * away[i] + noise.at(j, i));
      const best = scores.indexOf(Math.max(...scores));
      return scores.map((_, i) => (i === best ? 1 : 0));
    });
  }
}

const NORMALISE = {
  Softmax(scores) {
    const top = Math.max(...scores);
    return scaled(scores.map((a) => Math.exp(a - top)));
  },
  /** The threshold by bisection, then exactly for the support that it gives. */
  Sparsemax(scores) {
    let [low, high] = [Math.max(...scores) - 1, Math.max(...scores)];
    for (let i = 0; i < 100; i++) {
      const middle = (low + high) / 2;
      if (total(scores.map((a) => Math.max(a - middle, 0))) > 1) low = middle;
      else high = middle;
    }
    const support = scores.filter((a) => a > low);
    const threshold = (total(support) - 1) / support.length;
    return scores.map((a) => Math.max(a - threshold, 0));
  },
};

const total = (numbers) => numbers.reduce((a, b) => a + b, 0);
const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
export const squared = (x, y) => x.reduce((sum, value, i) => sum + (value - y[i]) ** 2, 0);
const scaled = (weights) => weights.map((w) => w / total(weights));
const countOfOnes = (number) => number.toString(2).replaceAll("0", "").length;

function evenly(chosen) {
  const count = chosen.filter(Boolean).length;
  return chosen.map((mine) => (mine ? 1 / count : 0));
}

/** Assignments from scores: the first of the best centers, or all of them evenly. */
function share(scores, ties) {
  const most = Math.max(...scores);
  if (ties === "average") return evenly(scores.map((value) => value === most));
  const first = scores.indexOf(most);
  return scores.map((_, j) => (j === first ? 1 : 0));
}

/** Weights of a column of a matrix of points by clusters, for each cluster. */
function byCluster(centers, rows, weights) {
  return centers.map((_, j) => weights(Array.from(rows, (row) => row[j])));
}

/** |y_i - e_j|^2 by cluster: 0 for own points, 2 for those of other clusters. */
function codeDistances(assignments) {
  return Array.from(assignments[0], (_, j) => assignments.map((row) =>
    row.reduce((sum, value, m) => sum + (value - (m === j ? 1 : 0)) ** 2, 0)));
}

/** The points that are nearest to each cluster's code; all if it has none. */
function members(assignments) {
  return codeDistances(assignments).map((away) => {
    const least = Math.min(...away) + 1e-9;
    return away.map((value) => value <= least);
  });
}

/** The points with the largest share in each cluster; all if it is empty. */
function largestShares(assignments) {
  return Array.from(assignments[0], (_, j) => {
    const most = Math.max(...assignments.map((row) => row[j])) - 1e-9;
    return assignments.map((row) => row[j] >= most);
  });
}

/** The weighted mean, relative to a point: exact though weights sum to 1 + 1e-16. */
function mean(points, weights) {
  const origin = points[0];
  const sums = Array.from(origin, () => 0);
  weights.forEach((w, i) => {
    if (w !== 0) sums.forEach((_, j) => (sums[j] += w * (points[i][j] - origin[j])));
  });
  return sums.map((value, j) => origin[j] + value);
}
