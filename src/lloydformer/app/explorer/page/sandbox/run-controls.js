// Numbers of the run: how many layers, and the seed of the noise.
import { h } from "../dom.js";

export class RunControls {
  constructor(model) {
    this.model = model;
    this.layers = h("input", {
      type: "range",
      min: 1,
      max: 30,
      "aria-label": "Number of layers",
      oninput: () => model.change({ layers: Number(this.layers.value) }),
    });
    this.shown = h("output", {});
    this.seed = h("input", {
      type: "number",
      min: 0,
      max: 99999,
      step: 1,
      "aria-label": "Seed of the noise",
      onchange: () =>
        model.change({
          seed: Math.min(99999, Math.max(0, Math.round(Number(this.seed.value) || 0))),
        }),
    });
    this.seedField = h("div", { class: "knob" }, h("span", {}, "Seed"), this.seed, h("output", {}));
    this.root = h(
      "div",
      { class: "knobs" },
      h("div", { class: "knob" }, h("span", {}, "Layers"), this.layers, this.shown),
      this.seedField,
    );
  }

  show() {
    const { layers, seed, recipe } = this.model.state;
    this.layers.value = layers;
    this.shown.textContent = layers;
    this.seed.value = seed;
    this.seedField.hidden = !JSON.stringify(recipe).includes('"Gumbel"');
  }
}
