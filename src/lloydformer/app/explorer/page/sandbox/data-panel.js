// The points: built-in sets, one's own, other centers to begin with, and how many.
import { choices, h, labelled, select } from "../dom.js";
import { DATASETS, dataset } from "../datasets.js";
import { startingCenters } from "../starts.js";
import { OwnPoints } from "./own-points.js";

const MOST_CENTERS = 8;

export class DataPanel {
  constructor(model, onnew) {
    Object.assign(this, { model, onnew, draws: 0 });
    this.menu = select(
      "Points",
      DATASETS.map(({ name, title }) => [name, title]),
      (name) => this.choose(name),
    );
    this.menu.append(h("option", { value: "", disabled: true, hidden: true }, "Your own points"));
    this.about = h("p", { class: "about" });
    this.tool = "draw";
    this.tools = choices(
      "What a click in the plot does",
      [
        ["draw", "Draw", "Click to add a point, drag to move a point or a center"],
        ["erase", "Erase", "Click a point to take it away"],
      ],
      "draw",
      (tool) => {
        this.tool = tool;
      },
    );
    this.count = h("output", {});
    this.fewer = h(
      "button",
      { type: "button", "aria-label": "One center fewer", onclick: () => this.resize(-1) },
      "−",
    );
    this.more = h(
      "button",
      { type: "button", "aria-label": "One center more", onclick: () => this.resize(1) },
      "+",
    );
    this.unit = h("input", {
      type: "checkbox",
      onchange: () => model.change({ unit: this.unit.checked }),
    });
    this.unitField = h("label", { class: "field" }, this.unit, h("span", {}, "on the unit circle"));
    this.own = new OwnPoints(
      () => model.state.points,
      (points) => this.use(points),
    );
    const starts = [
      ["random", "Centers drawn from the points at random", false],
      ["spread", "Centers drawn far from each other (k-means++)", true],
    ];
    this.root = h(
      "div",
      { class: "data" },
      h(
        "div",
        { class: "data-bar" },
        labelled("Points", this.menu),
        this.own.button,
        this.tools,
        h(
          "div",
          { class: "stepper", role: "group", "aria-label": "Number of centers" },
          this.fewer,
          this.count,
          this.more,
        ),
        h(
          "div",
          { class: "choices", role: "group", "aria-label": "New start" },
          h("span", { class: "lead-in" }, "New start:"),
          starts.map(([text, title, spread]) =>
            h("button", { type: "button", title, onclick: () => this.draw(spread) }, text),
          ),
        ),
        this.unitField,
        this.about,
      ),
      this.own.root,
    );
  }

  choose(name) {
    this.model.change({ data: name, ...dataset(name), layer: 0, breaks: [] });
    this.onnew();
  }

  draw(spread) {
    this.draws += 1;
    const { points } = this.model.state;
    this.model.change({
      centers: startingCenters(points, this.model.k, this.draws, spread),
      layer: 0,
    });
  }

  resize(by) {
    const { centers, points } = this.model.state;
    const k = Math.min(MOST_CENTERS, Math.max(1, centers.length + by));
    if (k === centers.length) return;
    const more = by > 0 ? [startingCenters(points, k, k, true).at(-1)] : [];
    this.model.change({
      centers: [...centers.slice(0, k), ...more].slice(0, k),
      layer: 0,
      breaks: [],
    });
  }

  use(points) {
    const centers = startingCenters(points, Math.min(this.model.k, points.length), 1, true);
    this.model.change({ data: null, points, centers, layer: 0, breaks: [] });
    this.onnew();
  }

  show() {
    const { state } = this.model;
    this.menu.value = state.data ?? "";
    const { d } = this.model;
    const own = `${state.points.length} points${d === 2 ? "" : ` in ${d} dimensions${d > 2 ? ", seen from the side that shows most" : ""}`}.`;
    this.about.textContent = DATASETS.find((one) => one.name === state.data)?.about ?? own;
    this.count.textContent = `${state.centers.length} center${state.centers.length === 1 ? "" : "s"}`;
    this.fewer.disabled = state.centers.length <= 1;
    this.more.disabled = state.centers.length >= Math.min(MOST_CENTERS, state.points.length);
    this.unit.checked = Boolean(state.unit);
    this.unitField.hidden = !state.unit && !state.recipe.norm;
  }
}
