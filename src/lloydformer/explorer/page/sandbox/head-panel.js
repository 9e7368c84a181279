// The selected head from inside: queries, keys and values, scores and attention, and what can be done to it.
import { h } from "../dom.js";
import { HeatMap } from "../heatmap.js";
import { clusterTriple } from "../palette.js";
import { headMenus } from "./menus.js";
import { breakWords } from "./breaks.js";
import { effect, headWords, headsOf, subspaceWords } from "./words.js";

/** Colours of the cells of an attention: those of the clusters that they speak of. */
export function tintOf(name, labels) {
  const { asks, answers } = headWords(name);
  if (answers === "center") return (row, column) => clusterTriple(column);
  if (asks === "center") return (row) => clusterTriple(row);
  return (row) => clusterTriple(labels ? labels[row] : 7);
}

const MAPS = ["queries", "scores", "attention", "keys", "values", "output"];
const TITLES = { queries: "Queries", keys: "Keys", values: "Values", scores: "Scores", attention: "Attention", output: "Adds" };

export class HeadPanel {
  constructor(model, hover, onset) {
    Object.assign(this, { model, hover, onset, patching: false });
    this.title = h("h3", {});
    this.line = h("p", { class: "line" });
    this.maps = h("div", { class: "maps" });
    this.readout = h("p", { class: "readout", "aria-live": "polite" });
    this.menus = h("div", { class: "menus" });
    this.breaks = h("div", { class: "breaks" });
    this.root = h("section", { class: "panel head-panel", "aria-label": "The selected head" }, h("header", {}, this.title, this.line), this.maps, this.readout,
      h("details", { class: "change" }, h("summary", {}, "Swap its parts"), this.menus), this.breaks);
    hover.listen((seen) => { this.readout.textContent = seen?.words ?? this.hint; });
    this.views = {};
  }

  get hint() {
    return this.patching ? "Click a cell of the attention: its row then looks there only."
      : this.model.state.layer === 0 ? "No layer has run yet: press Step." : "Rows ask, columns answer. The deeper the colour, the larger the number within its row.";
  }

  /** Makes the maps of another head or recipe. */
  build() {
    const { recipe, head } = this.model.state;
    const { title, line, asks, answers, slot } = headWords(head);
    this.title.textContent = title;
    this.line.textContent = `${line[0].toUpperCase()}${line.slice(1)} and ${effect(headsOf(recipe)[head])}.`;
    const kinds = {
      queries: [asks, null], keys: [answers, null], values: [answers, null], output: [asks, null], scores: [asks, answers], attention: [asks, answers],
    };
    Object.values(this.views).forEach((view) => view.drop());
    this.views = Object.fromEntries(MAPS.map((name) => [name, new HeatMap({
      title: TITLES[name], hover: this.hover, rows: kinds[name][0], columns: kinds[name][1], onpick: name === "attention" ? (row, column) => this.patch(row, column) : null,
    })]));
    MAPS.forEach((name) => { this.views[name].root.dataset.map = name; this.views[name].root.dataset.kinds = kinds[name].map((kind) => kind ?? "dimension").join("-"); });
    this.maps.dataset.shape = `${asks}-${answers}`;
    this.maps.replaceChildren(...MAPS.map((name) => this.views[name].root));
    this.menus.replaceChildren(...headMenus(slot, recipe, this.onset));
    this.show();
  }

  show() {
    const { model } = this;
    const { head } = model.state;
    const bands = model.circuit?.subspaces.map((space) => ({ ...space, name: subspaceWords(space.name) }));
    const ready = Boolean(model.get(`${head}.attention`));
    this.maps.classList.toggle("waiting", !ready);
    for (const name of ready ? MAPS : []) {
      const tokens = !["scores", "attention"].includes(name);
      this.views[name].show(model.get(`${head}.${name}`), tokens ? { scale: "signed", bands } : { scale: name === "scores" ? "range" : "weight", tint: tintOf(head, model.labels) });
    }
    this.readout.textContent = this.hint;
    this.showBreaks();
  }

  showBreaks() {
    const { state } = this.model;
    const mine = state.breaks.find((one) => one.name === state.head && one.kind !== "patch");
    const button = (kind, text, title) => h("button", { type: "button", title, "aria-pressed": String(mine?.kind === kind), "data-break": kind, onclick: () => this.toggle(kind) }, text);
    const others = state.breaks.map((one, at) => h("li", {}, breakWords(one, headWords(one.name).title), " ",
      h("button", { type: "button", class: "quiet", "aria-label": `Repair: ${breakWords(one, headWords(one.name).title)}`, onclick: () => this.model.change({ breaks: state.breaks.filter((_, i) => i !== at) }) }, "repair")));
    this.breaks.replaceChildren(
      h("h4", {}, "Break it"),
      h("div", { class: "choices", role: "group", "aria-label": "Break this head" }, button("off", "Switch off", "It adds nothing."),
        button("uniform", "Ask evenly", "All keys have the same weight."), button("freeze", "Freeze", "The attention of this layer stays in all later ones."),
        h("button", { type: "button", "aria-pressed": String(this.patching), "data-break": "patch", title: "Click a cell of the attention to give it the weight of its row.", onclick: () => { this.patching = !this.patching; this.show(); } }, "Set by hand")),
      this.erasers(), others.length ? h("ul", { class: "broken-list" }, others) : "");
  }

  /** Buttons that erase a subspace of all points or of all centers. */
  erasers() {
    const { state, circuit } = this.model;
    const { side } = headWords(state.head);
    const spaces = (circuit?.subspaces ?? []).map(({ name }) => {
      const at = state.breaks.findIndex((one) => one.kind === "erase" && one.name === side && one.subspace === name);
      return h("button", { type: "button", "aria-pressed": String(at >= 0), onclick: () => this.model.change({ breaks: at >= 0 ? state.breaks.filter((_, i) => i !== at) : [...state.breaks, { kind: "erase", name: side, subspace: name }] }) }, subspaceWords(name));
    });
    return spaces.length ? h("div", { class: "choices", role: "group", "aria-label": `Erase from the ${side === "encoder" ? "points" : "centers"}` },
      h("span", { class: "lead-in" }, `Erase from ${side === "encoder" ? "points" : "centers"}:`), spaces) : "";
  }

  toggle(kind) {
    const { breaks, head, layer } = this.model.state;
    const others = breaks.filter((one) => one.name !== head || one.kind === "patch");
    const same = breaks.some((one) => one.name === head && one.kind === kind);
    this.model.change({ breaks: same ? others : [...others, { kind, name: head, ...(kind === "freeze" ? { layer: Math.max(0, layer - 1) } : {}) }] });
  }

  patch(row, column) {
    const { breaks, head, layer } = this.model.state;
    if (!this.patching || layer === 0) return;
    const one = { kind: "patch", name: head, layer: layer - 1, row, column };
    this.model.change({ breaks: [...breaks.filter((b) => !(b.kind === "patch" && b.name === head && b.layer === layer - 1 && b.row === row)), one] });
  }
}
