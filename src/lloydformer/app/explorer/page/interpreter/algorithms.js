/**
 * The plain algorithms, one iteration in three steps: assign points, weigh them, place centers.
 *
 * As lloydformer.algorithms in Python, and without code of the circuits except the noise.
 */

import {
  byCluster, codeDistances, countOfOnes, dot, evenly, largestShares, mean, members, scaled, share,
  squared, total,
} from "./members.js";
import { gumbel } from "./noise.js";

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
      const least = Math.min(...away);
      return evenly(away.map((value) => value === least));
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

/** Activations of robust k-means, from the scores of a cluster's own points to their weights. */
export const NORMALISE = {
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
