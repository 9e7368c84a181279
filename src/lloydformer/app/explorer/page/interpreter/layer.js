/** The layer: one iteration of the algorithm, as the paper's equation. */

import { NOTHING } from "./activations.js";
import { QuadraticNetwork } from "./feedforward.js";
import { Attention, isSeparated } from "./heads.js";
import { Matrix, sum } from "./matrix.js";
import { FixedNumbers } from "./modulation.js";
import { normalise } from "./norms.js";
import { keepsLogarithms, logShares, measureOf, reach } from "./outside.js";
import { gapOf, separationOf, slotsOf } from "./recipe.js";

/** The order in which the slots run: self-attention first, which clears what is written next. */
const ORDER = ["encoder_self", "encoder_cross", "affinity", "decoder_self", "decoder_cross"];

export class Layer {
  /**
   * @param {object} recipe
   * @param {import("./tokens.js").Space} space
   * @param {Object<string, Object<string, Matrix>>} weights of learned heads, by head
   */
  constructor(recipe, space, weights = {}) {
    Object.assign(this, { recipe, space });
    this.slots = new Map(slotsOf(recipe));
    this.heads = new Map();
    for (const [slot, heads] of this.slots) {
      for (const [name, head] of heads) {
        this.heads.set(name, new Attention(head, space, measureOf(slot, head), weights[name]));
      }
    }
    this.logShares = keepsLogarithms(recipe);
    this.separatedSlot = ORDER.find((slot) =>
      this.slots.get(slot)?.some(([, head]) => isSeparated(head)));
    this.numbers = recipe.numbers && new FixedNumbers(recipe.numbers, space);
    this.feedforward = recipe.feedforward && new QuadraticNetwork(recipe.feedforward, space);
  }

  /** The names of the intermediates, in Python's order. */
  get points() {
    const heads = [...this.heads].flatMap(([name, head]) => prefixed(name, head.points));
    const apart = this.separatedSlot ? ["separation", "gap"] : [];
    const numbers = this.numbers ? prefixed("numbers", this.numbers.points) : [];
    const network = this.feedforward ? prefixed("feedforward", ["hidden", "output"]) : [];
    return [...heads, ...apart, ...numbers, ...network, "encoder_tokens", "decoder_tokens",
      "encoder_residual", "decoder_residual", "decoder_middle", "encoder_next", "decoder_next"];
  }

  /**
   * X <- X + self(X, X) + cross(X, C), then C <- C + self(C, C) + cross(C, X), then the norm and
   * the feed-forward network.
   * @param {Matrix} encoder @param {Matrix} decoder
   * @param {{noise: ?Function, point: (name: string, value: Matrix) => Matrix}} context
   * @returns {[Matrix, Matrix]} the tokens after the layer
   */
  run(encoder, decoder, { noise, point }) {
    let [x, c] = [point("encoder_tokens", encoder), point("decoder_tokens", decoder)];
    let numbers = null;
    if (this.numbers) {
      [x, numbers] = this.numbers.run(x, c, (name, value) => point(`numbers.${name}`, value));
    }
    const running = new RunningLayer(this, x, c, { numbers, noise, point });
    const { recipe, space } = this;
    const left = point("encoder_residual", sum(x, running.slot("encoder_self", x, x)));
    x = sum(left, running.slot("encoder_cross", x, c));
    if (recipe.affinity) x = sum(x, running.slot("affinity", x, c));
    x = point("encoder_next", x);
    const kept = point("decoder_residual", sum(c, running.slot("decoder_self", c, c)));
    c = point("decoder_middle", sum(kept, running.slot("decoder_cross", c, x)));
    if (recipe.norm) {
      c = space.write(c, "position", normalise(recipe.norm, space.read(c, "position")));
    }
    if (this.feedforward) {
      c = sum(c, this.feedforward.run(c, (name, value) => point(`feedforward.${name}`, value)));
    }
    return [x, point("decoder_next", c)];
  }
}

const prefixed = (prefix, names) => names.map((name) => `${prefix}.${name}`);

/** A layer while it runs: calls the heads of a slot with their context. */
class RunningLayer {
  constructor(layer, points, centers, { numbers, noise, point }) {
    Object.assign(this, { layer, points, centers, numbers, noise, point });
    this.separation = 0;
    this.gap = NOTHING.gap;
    this.logs = null; // logarithms of the assignments, (k, n)
  }

  /** The sum of the outputs of a slot's heads. */
  slot(name, tokens, sources) {
    this.#note(name, tokens, sources);
    if (name === this.layer.separatedSlot) this.#separate();
    const context = {
      ...NOTHING,
      gap: this.gap,
      logScores: name === "decoder_cross" ? this.logs : null,
      noise: this.noise && ((scores) => this.noise(name, scores)),
    };
    const found = this.layer.slots.get(name).map(([head]) =>
      this.layer.heads.get(head).attend(tokens, sources, {
        context,
        separation: this.separation,
        numbers: this.numbers,
        point: (inner, value) => this.point(`${head}.${inner}`, value),
      }));
    if (name === "encoder_cross" && this.layer.logShares) {
      const { inverse_temperature: gamma } = this.layer.recipe.encoder_cross.activation;
      this.logs = logShares(found[0].scores, gamma);
    }
    return found.map(({ output }) => output).reduce(sum);
  }

  /** Keep the current tokens of points and centers. */
  #note(slot, tokens, sources) {
    if (slot === "decoder_cross") [this.centers, this.points] = [tokens, sources];
    else if (slot === "decoder_self") this.centers = tokens;
    else this.points = tokens;
  }

  /** Decide the separation and the gap for the current tokens. */
  #separate() {
    const { recipe, space } = this.layer;
    const [far, k] = [reach(space, this.points, this.centers), this.centers.rows];
    const chosen = Matrix.filled(1, 1, separationOf(recipe, far, k));
    this.separation = this.point("separation", chosen).data[0];
    const within = gapOf(recipe, this.separation, k);
    const gaps = Float64Array.from(far.everyone, (all) => (all ? Infinity : within));
    this.gap = this.point("gap", new Matrix(k, 1, gaps));
  }
}
