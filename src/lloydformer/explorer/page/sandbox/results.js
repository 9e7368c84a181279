// What came out: the objective, the deviation from the plain algorithm, its lines, and the numbers of the layer.
import { h, short } from "../dom.js";

export class Results {
  constructor(model) {
    this.model = model;
    this.summary = h("p", { class: "summary" });
    this.lines = h("div", { class: "lines" });
    this.table = h("div", { class: "wide", tabindex: 0 });
    this.numbers = h("details", { class: "numbers" }, h("summary", {}, "The numbers of this layer"), this.table);
  }

  show() {
    this.showSummary();
    this.showLines();
    this.showNumbers();
  }

  showSummary() {
    const { trace, state } = this.model;
    this.summary.replaceChildren(...(trace ? [h("span", {}, "objective "), h("output", { class: "objective-value", "data-value": trace.objective[state.layer] }, short(trace.objective[state.layer], 5))] : []));
  }

  showLines() {}

  showNumbers() {
    const { trace, state } = this.model;
    const rows = trace ? trace.centers[state.layer] : [];
    const labels = this.model.labels;
    const sizes = rows.map((_, j) => (labels ? labels.reduce((sum, label) => sum + (label === j), 0) : null));
    const head = h("tr", {}, h("th", {}, "center"), [...(rows[0] ?? [])].map((_, i) => h("th", {}, `x${i + 1}`)), h("th", {}, "points"));
    this.table.replaceChildren(h("table", {}, h("caption", {}, state.layer ? `Centers after layer ${state.layer}, and how many points they have` : "Centers at the start"), head,
      rows.map((row, j) => h("tr", { class: "center-row" }, h("th", {}, String(j + 1)), [...row].map((x) => h("td", { class: "number", "data-value": String(x) }, short(x, 6))), h("td", { class: "number" }, sizes[j] === null ? "–" : String(sizes[j]))))));
  }
}
