/** The circuit: runs a recipe, T layers for T iterations. */

import { asProblem } from "./checks.js";
import { Layer } from "./layer.js";
import { Matrix } from "./matrix.js";
import { layerNoise } from "./noise.js";
import { median } from "./origin.js";
import { patchesOf } from "./patches.js";
import { isTranslationInvariant, recipeFromJson } from "./recipe.js";
import { Refusal, requireCount } from "./refusal.js";
import { decoderTokens, encoderTokens, spaceOf } from "./tokens.js";
import { runLayer, Trace } from "./trace.js";

export class Circuit {
  /**
   * @param {object | object[]} recipe JSON of a recipe, or of a schedule of recipes
   * @param {{nFeatures: number, nClusters: number, weights?: object}} sizes weights: matrices of
   *   learned heads, {encoder_cross: {query: Matrix, query_bias: Matrix, ...}, ...}
   * @throws {Refusal} if the parts do not fit together
   */
  constructor(recipe, { nFeatures, nClusters, weights = {} }) {
    this.schedule = asSchedule(recipe);
    requireCount("n_features", nFeatures);
    requireCount("n_clusters", nClusters);
    Object.assign(this, { nFeatures, nClusters });
    this.tokens = this.schedule[0].tokens;
    this.space = spaceOf(this.tokens, nFeatures, nClusters);
    this.layers = this.schedule.map((one) => new Layer(one, this.space, weights));
    this.centered = this.schedule.every(isTranslationInvariant);
  }

  /** The named column ranges of tokens: [{name, symbol, start, stop}, ...]. */
  get subspaces() {
    return this.tokens.subspaces.map(({ name, symbol }) => {
      const [start, stop] = this.space.span(name);
      return { name, symbol, start, stop };
    });
  }

  /**
   * @param {ArrayLike<number>[] | Matrix} points n rows of d numbers
   * @param {ArrayLike<number>[] | Matrix} centers k rows of d numbers
   * @param {{nLayers?: number, seed?: ?number, hooks?: object | Map}} options
   * @returns {Trace}
   */
  run(points, centers, { nLayers = 10, seed = null, hooks = {} } = {}) {
    const [x, c] = asProblem(points, centers, this);
    requireCount("n_layers", nLayers);
    if (seed !== null) requireCount("seed", seed, 0);
    const order = Array.from({ length: nLayers }, (_, t) => this.layers[t % this.layers.length]);
    const names = order.flatMap((layer, t) => layer.points.map((name) => `layers.${t}.${name}`));
    const patches = patchesOf(hooks, names);
    const [history, assignments, layers] = [[c], [], []];
    let tokens = this.#embed(x, c);
    order.forEach((layer, t) => {
      if (t && layer.recipe.embeds_again) tokens = this.#embed(x, history[t]);
      layers.push({ layer, ...tokens, noise: layerNoise(seed, t) });
      const [encoder, decoder] = runLayer(layers[t], t, patches, (name, value) => {
        if (name === "encoder_cross.attention") assignments.push(value);
      });
      history.push(moved(this.space.read(decoder, "position"), tokens.origin, 1));
      tokens = { encoder, decoder, origin: tokens.origin };
    });
    const { origin } = tokens;
    return new Trace({ points: x, centers: history, assignments, origin, layers, patches, names });
  }

  #embed(points, centers) {
    const origin = this.centered ? median(points) : new Float64Array(points.cols);
    const [x, c] = [moved(points, origin, -1), moved(centers, origin, -1)];
    return {
      encoder: encoderTokens(this.tokens, this.space, x, this.nClusters),
      decoder: decoderTokens(this.tokens, this.space, c),
      origin,
    };
  }
}

/** The rows plus, or minus, a vector. */
function moved(rows, vector, sign) {
  return rows.map((value, at) => value + sign * vector[at % rows.cols]);
}

function asSchedule(recipe) {
  recipeFromJson(recipe);
  const schedule = Array.isArray(recipe) ? recipe : [recipe];
  if (!schedule.length || schedule.some((one) => one?.part !== "Recipe")) {
    throw new Refusal("recipe: pass a recipe, for example lf.recipes.lloyd()");
  }
  const tokens = new Set(schedule.map((one) => JSON.stringify(one.tokens)));
  if (tokens.size > 1) {
    throw new Refusal("recipe: a schedule needs recipes with the same tokens; found several");
  }
  return schedule;
}

export { Matrix };
