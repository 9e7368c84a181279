// The sandbox's state and what follows from it: the circuit, its trace, the plain algorithm beside it.
import { Circuit, Refusal, hooksOf, linesOf } from "../interpreter/index.js";
import { fitting } from "./breaks.js";
import { compare } from "./comparison.js";

/** A vector of length 1 in the same direction; of zero, the first axis. */
function unitVector(v) {
  const size = Math.hypot(...v);
  return size > 0 ? v.map((x) => x / size) : v.map((_, i) => (i ? 0 : 1));
}

export class Model {
  /** `state`: {recipe, base, baseName, data, points, centers, layers, seed, layer, head, breaks}. */
  constructor(state) {
    this.state = state;
    this.listeners = [];
    this.run();
  }

  get k() {
    return this.state.centers.length;
  }
  get d() {
    return this.state.points[0].length;
  }
  /** The layer that is shown: 0 is the start. */
  get layer() {
    return this.trace ? Math.min(this.state.layer, this.trace.nLayers) : 0;
  }
  /** The points and first centers as the circuit gets them. */
  get points() {
    return this.state.unit ? this.state.points.map(unitVector) : this.state.points;
  }
  get centers() {
    return this.state.unit ? this.state.centers.map(unitVector) : this.state.centers;
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  /** Changes the state, runs the circuit again if it must, and tells all views. */
  change(changes) {
    Object.assign(this.state, changes);
    const shown = Object.keys(changes).every((name) => ["layer", "head"].includes(name));
    if (!shown) this.run();
    this.listeners.forEach((listener) => listener(shown ? "shown" : "run", changes));
  }

  run() {
    const { recipe, layers: nLayers, seed, breaks } = this.state;
    const { points, centers } = this;
    Object.assign(this, {
      circuit: null,
      trace: null,
      clean: null,
      comparison: null,
      refusal: null,
    });
    try {
      this.circuit = new Circuit(recipe, { nFeatures: this.d, nClusters: this.k });
      this.clean = this.circuit.run(points, centers, { nLayers, seed });
      this.state.breaks = fitting(breaks, this.circuit, this.clean);
      const hooks = hooksOf(this.state.breaks, this.circuit, () => this.clean);
      this.trace = hooks.size
        ? this.circuit.run(points, centers, { nLayers, seed, hooks })
        : this.clean;
      this.comparison = compare(this);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.refusal = error.message;
    }
  }

  /** An intermediate of the layer that is shown; null before the first layer. */
  get(name) {
    return this.layer > 0 ? this.trace.get(`layers.${this.layer - 1}.${name}`) : null;
  }

  /** The labels of the layer that is shown, or null. */
  get labels() {
    return this.layer > 0 ? this.trace.labels[this.layer - 1] : null;
  }

  /** The lines of the algorithm in the layer that is shown, each with whether it holds. */
  get lines() {
    const t = Math.max(0, this.layer - 1);
    return this.trace
      ? linesOf(this.circuit, this.trace, t, this.comparison?.algorithm ?? null)
      : [];
  }
}
