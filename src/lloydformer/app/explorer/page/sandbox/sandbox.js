// The sandbox: points on the left, the layer in the middle, the selected head on the right, time below.
import { h } from "../dom.js";
import { Hover } from "../hover.js";
import { onTheme } from "../palette.js";
import { brokenHeads } from "./breaks.js";
import { DataPanel } from "./data-panel.js";
import { HeadPanel, tintOf } from "./head-panel.js";
import { LayerFigure } from "./layer-figure.js";
import { shape, slotMenu } from "./menus.js";
import { ObjectiveChart } from "./objective-chart.js";
import { Player } from "./player.js";
import { PlotView } from "./plot-view.js";
import { RecipeBar } from "./recipe-bar.js";
import { RunControls } from "./run-controls.js";
import { Results } from "./results.js";
import { SharePanel } from "./share-panel.js";
import { headsOf } from "./words.js";

export class Sandbox {
  constructor(root, model) {
    this.model = model;
    this.hover = new Hover();
    this.recipes = new RecipeBar(model);
    this.data = new DataPanel(model, () => {
      this.plot.fit();
      this.plot.show(false);
    });
    this.plot = new PlotView(model, this.hover, () => this.data.tool);
    this.figure = new LayerFigure({
      hover: this.hover,
      menu: (slot) => slotMenu(slot, model.state.recipe, (sets) => this.recipes.set(sets)),
      onhead: (head) => model.change({ head }),
    });
    this.head = new HeadPanel(model, this.hover, (sets) => this.recipes.set(sets));
    this.player = new Player((layer) => model.change({ layer }));
    this.chart = new ObjectiveChart();
    this.controls = new RunControls(model);
    this.results = new Results(model);
    this.share = new SharePanel(
      model,
      { plot: this.plot.plot.svg, layer: this.figure.svg, objective: this.chart.svg },
      () => this.head.views,
    );
    root.replaceChildren(...this.panels());
    model.listen((what, changes) => this.show(what, changes));
    onTheme(() => this.show("shown", {}));
    this.show("run", {});
  }

  panels() {
    return [
      h("div", { class: "toolbar" }, this.recipes.root, this.share.root),
      this.data.root,
      this.share.drawer,
      h(
        "div",
        { class: "work" },
        h(
          "section",
          { class: "panel points-panel", "aria-label": "Points and centers" },
          this.plot.root,
          this.player.root,
          h("div", { class: "turn" }, this.controls.root, this.recipes.knobs),
          h("div", { class: "objective" }, this.chart.svg, this.results.summary),
        ),
        h(
          "section",
          { class: "panel layer-panel", "aria-label": "The layer" },
          this.figure.root,
          this.results.lines,
        ),
        this.head.root,
      ),
      this.results.numbers,
    ];
  }

  show(what, changes) {
    const { model } = this;
    const { state, trace } = model;
    const heads = headsOf(state.recipe);
    if (!heads[state.head]) state.head = "encoder_cross";
    if (what === "run") {
      const parts = shape(state.recipe);
      if (parts !== this.parts) {
        this.figure.build(state.recipe);
        this.head.build();
      }
      if (parts !== this.parts || "unit" in changes || "breaks" in changes) this.plot.fit();
      this.parts = parts;
      this.recipes.show();
      this.data.show();
      this.controls.show();
    }
    if ("head" in changes) this.head.build();
    this.plot.show("layer" in changes && Object.keys(changes).length === 1);
    this.results.show();
    this.figure.show(
      (name) => {
        const matrix = model.get(`${name}.attention`);
        return matrix && { matrix, tint: tintOf(name, model.labels) };
      },
      state.head,
      brokenHeads(state.breaks),
      this.results.fails(),
    );
    this.head.show();
    this.player.show(model.layer, trace?.nLayers ?? state.layers);
    if (trace) this.chart.show(trace.objective, model.comparison?.objective ?? null, model.layer);
    this.share.remember();
  }
}
