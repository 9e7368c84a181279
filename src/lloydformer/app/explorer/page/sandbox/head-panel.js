// The selected head from inside: queries, keys and values, scores and attention, and what can be done to it.
import { h, rebuilt } from "../dom.js";
import { HeatMap } from "../heatmap.js";
import { clusterTriple } from "../palette.js";
import { headMenus } from "./menus.js";
import { BreakPanel } from "./break-panel.js";
import { effect, headWords, headsOf, subspaceWords } from "./words.js";

/** Colours of the cells of an attention: those of the clusters that they speak of. */
export function tintOf(name, labels) {
  const { asks, answers } = headWords(name);
  if (answers === "center") return (row, column) => clusterTriple(column);
  if (asks === "center") return (row) => clusterTriple(row);
  return (row) => clusterTriple(labels ? labels[row] : 7);
}

const MAPS = ["queries", "scores", "attention", "keys", "values", "output"];
const TITLES = {
  queries: "Queries",
  keys: "Keys",
  values: "Values",
  scores: "Scores",
  attention: "Attention",
  output: "Adds",
};

export class HeadPanel {
  constructor(model, hover, onset) {
    Object.assign(this, { model, hover, onset });
    this.title = h("h3", {});
    this.line = h("p", { class: "line" });
    this.maps = h("div", { class: "maps" });
    this.readout = h("p", { class: "readout", "aria-live": "polite" });
    this.menus = h("div", { class: "menus" });
    this.breaks = new BreakPanel(model, () => this.show());
    this.root = h(
      "section",
      { class: "panel head-panel", "aria-label": "The selected head" },
      h("header", {}, this.title, this.line),
      this.maps,
      this.readout,
      h("details", { class: "change" }, h("summary", {}, "Swap its parts"), this.menus),
      this.breaks.root,
    );
    hover.listen((seen) => {
      this.readout.textContent = seen?.words ?? this.hint;
    });
    this.views = {};
  }

  get hint() {
    return this.breaks.byHand
      ? "Click a cell of the attention: its row then looks there only."
      : this.model.layer === 0
        ? "No layer has run yet: press Step."
        : "Rows ask, columns answer. The deeper the colour, the larger the number within its row.";
  }

  /** Makes the maps of another head or recipe. */
  build() {
    const { recipe, head } = this.model.state;
    const { title, line, asks, answers, slot } = headWords(head);
    this.title.textContent = title;
    this.line.textContent = `${line[0].toUpperCase()}${line.slice(1)} and ${effect(headsOf(recipe)[head])}.`;
    const kinds = {
      queries: [asks, null],
      keys: [answers, null],
      values: [answers, null],
      output: [asks, null],
      scores: [asks, answers],
      attention: [asks, answers],
    };
    Object.values(this.views).forEach((view) => view.drop());
    this.views = Object.fromEntries(
      MAPS.map((name) => [
        name,
        new HeatMap({
          title: TITLES[name],
          hover: this.hover,
          rows: kinds[name][0],
          columns: kinds[name][1],
          onpick: name === "attention" ? (row, column) => this.breaks.patch(row, column) : null,
        }),
      ]),
    );
    MAPS.forEach((name) => {
      this.views[name].root.dataset.map = name;
      this.views[name].root.dataset.kinds = kinds[name]
        .map((kind) => kind ?? "dimension")
        .join("-");
    });
    this.maps.dataset.shape = `${asks}-${answers}`;
    this.maps.replaceChildren(...MAPS.map((name) => this.views[name].root));
    rebuilt(this.menus, () => this.menus.replaceChildren(...headMenus(slot, recipe, this.onset)));
    this.show();
  }

  show() {
    const { model } = this;
    const { head } = model.state;
    const bands = model.circuit?.subspaces.map((space) => ({
      ...space,
      name: subspaceWords(space.name),
    }));
    const ready = Boolean(model.get(`${head}.attention`));
    this.maps.classList.toggle("waiting", !ready);
    for (const name of ready ? MAPS : []) {
      const tokens = !["scores", "attention"].includes(name);
      this.views[name].show(
        model.get(`${head}.${name}`),
        tokens
          ? { scale: "signed", bands }
          : { scale: name === "scores" ? "range" : "weight", tint: tintOf(head, model.labels) },
      );
    }
    this.readout.textContent = this.hint;
    this.breaks.show();
  }
}
