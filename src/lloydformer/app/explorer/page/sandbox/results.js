// What came out: the objective, the deviation from the plain algorithm, its lines, and the numbers of the layer.
import { h, short } from "../dom.js";

export class Results {
  constructor(model) {
    this.model = model;
    this.summary = h("p", { class: "summary" });
    this.lines = h("div", { class: "lines" });
    this.table = h("div", { class: "wide", tabindex: 0 });
    this.numbers = h(
      "details",
      { class: "numbers" },
      h("summary", {}, "The numbers of this layer"),
      this.table,
    );
  }

  show() {
    this.showSummary();
    this.showLines();
    this.showNumbers();
  }

  showSummary() {
    const { trace, layer, comparison } = this.model;
    if (!trace) return this.summary.replaceChildren();
    const value = trace.objective[layer];
    const parts = [
      h("span", { class: "key circuit" }, "circuit"),
      h("output", { class: "objective-value", "data-value": value }, short(value, 5)),
    ];
    if (comparison) {
      const apart = Math.max(...comparison.apart.slice(0, layer + 1));
      parts.push(
        h("span", { class: "key plain" }, "plain algorithm"),
        h("output", {}, short(comparison.objective[layer], 5)),
        h(
          "span",
          { class: apart > 1e-9 ? "apart far" : "apart" },
          "largest deviation of the centers so far: ",
          h("output", { class: "deviation", "data-value": apart }, short(apart, 2)),
        ),
      );
    } else
      parts.push(
        h(
          "span",
          { class: "apart" },
          "There is no plain algorithm of these parts to compare with.",
        ),
      );
    return this.summary.replaceChildren(...parts);
  }

  /** The algorithm's lines, with a mark at those that the layer no longer does. */
  showLines() {
    const { trace, layer, comparison } = this.model;
    const lines = (this.measured = this.model.lines);
    const title = comparison ? comparison.algorithm.name : "What a layer does";
    const item = ({ text, holds, off, count, slot }) =>
      h(
        "li",
        { class: holds ? "holds" : "fails", "data-slot": slot },
        h(
          "span",
          { class: "mark", role: "img", "aria-label": holds ? "holds" : "does not hold" },
          holds ? "✓" : "✗",
        ),
        h("span", {}, text),
        holds
          ? null
          : h(
              "span",
              { class: "off" },
              `${count} ${slot.startsWith("encoder") ? "point" : "center"}${count === 1 ? "" : "s"} off, by up to ${short(off, 2)}`,
            ),
      );
    this.lines.replaceChildren(
      h("h3", {}, title),
      trace ? h("ol", {}, lines.map(item)) : "",
      h("p", { class: "measured" }, trace ? `Measured in layer ${Math.max(1, layer)}.` : ""),
    );
  }

  /** How many lines fail, by the slot that should do them. */
  fails() {
    const fails = {};
    for (const { slot, holds } of this.measured) if (!holds) fails[slot] = (fails[slot] ?? 0) + 1;
    return fails;
  }

  showNumbers() {
    const { trace, layer } = this.model;
    const rows = trace ? trace.centers[layer] : [];
    const labels = this.model.labels;
    const sizes = rows.map((_, j) =>
      labels ? labels.reduce((sum, label) => sum + (label === j), 0) : null,
    );
    const head = h(
      "tr",
      {},
      h("th", {}, "center"),
      [...(rows[0] ?? [])].map((_, i) => h("th", {}, `x${i + 1}`)),
      h("th", {}, "points"),
    );
    this.table.replaceChildren(
      h(
        "table",
        {},
        h(
          "caption",
          {},
          layer
            ? `Centers after layer ${layer}, and how many points they have`
            : "Centers at the start",
        ),
        head,
        rows.map((row, j) =>
          h(
            "tr",
            { class: "center-row" },
            h("th", {}, String(j + 1)),
            [...row].map((x) => h("td", { class: "number", "data-value": String(x) }, short(x, 6))),
            h("td", { class: "number" }, sizes[j] === null ? "–" : String(sizes[j])),
          ),
        ),
      ),
    );
  }
}
