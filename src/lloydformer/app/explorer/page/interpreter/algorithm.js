/** The plain algorithm that a recipe of the package, or a variant of it, is meant to be. */

import {
  Lloyd, LloydBinary, Medoids, NORMALISE, Robust, Soft, Spherical, Trimmed,
} from "./algorithms.js";
import { identify } from "./identify.js";

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
