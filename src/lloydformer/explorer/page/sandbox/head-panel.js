// The selected head from inside: queries, keys and values, scores and attention, and what can be done to it.
import { h, rebuilt } from "../dom.js";
import { HeatMap } from "../heatmap.js";
import { clusterTriple } from "../palette.js";
import { headMenus } from "./menus.js";
import { breakOf, breakWords, erased, evened, frozen, sameBreak, setByHand, switchedOff, targetOf } from "./breaks.js";
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
      : this.model.layer === 0 ? "No layer has run yet: press Step." : "Rows ask, columns answer. The deeper the colour, the larger the number within its row.";
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
    rebuilt(this.menus, () => this.menus.replaceChildren(...headMenus(slot, recipe, this.onset)));
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
    const now = breakOf(state.breaks, state.head);
    const button = (kind, text, title, pressed = now === kind) =>
      h("button", { type: "button", title, "aria-pressed": String(pressed), "data-break": kind, onclick: () => this.toggle(kind) }, text);
    const { asks, answers } = headWords(state.head);
    rebuilt(this.breaks, () => this.breaks.replaceChildren(
      h("h4", {}, "Break it"),
      h("div", { class: "choices", role: "group", "aria-label": "Break this head" }, button("off", "Switch off", "It adds nothing any more."),
        asks !== answers ? button("even", "Ask evenly", "All keys get the same weight.") : null,
        button("freeze", "Freeze", "Its attention in all layers is that of the layer shown."),
        button("hand", "Set by hand", "Then click cells of the attention.", this.patching)),
      this.erasers(), this.broken()));
  }

  /** What is broken, each with its repair. */
  broken() {
    const { breaks } = this.model.state;
    const items = breaks.map((one) => h("li", {}, breakWords(one), " ", h("button", {
      type: "button", class: "quiet", "aria-label": `repair: ${breakWords(one)}`, onclick: () => this.model.change({ breaks: breaks.filter((other) => other !== one) }),
    }, "repair")));
    return items.length ? h("ul", { class: "broken-list" }, items) : "";
  }

  /** Buttons that erase a subspace of all points or of all centers. */
  erasers() {
    const { state, circuit } = this.model;
    const { side } = headWords(state.head);
    const whose = side === "encoder" ? "points" : "centers";
    const buttons = (circuit?.subspaces ?? []).map(({ name }) => {
      const one = erased(side, name);
      const others = state.breaks.filter((other) => !sameBreak(one, other));
      const pressed = others.length < state.breaks.length;
      return h("button", { type: "button", "aria-pressed": String(pressed), onclick: () => this.model.change({ breaks: pressed ? others : [...others, one] }) }, subspaceWords(name));
    });
    return buttons.length ? h("div", { class: "choices", role: "group", "aria-label": `Erase from the ${whose}` }, h("span", { class: "lead-in" }, `Erase from ${whose}:`), buttons) : "";
  }

  toggle(kind) {
    const { state: { breaks, head }, layer } = this.model;
    if (kind === "hand") { this.patching = !this.patching; this.show(); return; }
    const others = breaks.filter((one) => !(targetOf(one).head === head && targetOf(one).layer === null));
    const make = {
      off: () => switchedOff(head), freeze: () => frozen(head, Math.max(0, layer - 1)),
      even: () => evened(head, this.model.trace.get(`layers.0.${head}.attention`)),
    };
    this.model.change({ breaks: breakOf(breaks, head) === kind ? others : [...others, make[kind]()] });
  }

  patch(row, column) {
    const { state: { breaks, head }, layer } = this.model;
    if (!this.patching || layer === 0) return;
    const one = setByHand(head, layer - 1, this.model.get(`${head}.attention`), row, column);
    this.model.change({ breaks: [...breaks.filter((other) => !sameBreak(one, other)), one] });
  }
}
