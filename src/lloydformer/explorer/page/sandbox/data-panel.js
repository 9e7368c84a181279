// The points: built-in sets, one's own, other centers to begin with, and how many.
import { choices, h, labelled, select } from "../dom.js";
import { DATASETS, dataset } from "../datasets.js";
import { startingCenters } from "../starts.js";
import { asText, parsePoints, textOf, Unreadable } from "./csv.js";

const MOST_CENTERS = 8;

export class DataPanel {
  constructor(model, onnew) {
    Object.assign(this, { model, onnew, draws: 0 });
    this.menu = select(
      "Points",
      [...DATASETS.map(({ name, title }) => [name, title]), ["", "Your own points…"]],
      (name) => this.choose(name),
    );
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
    this.text = h("textarea", {
      rows: 5,
      "aria-label": "Points, one per line",
      spellcheck: "false",
    });
    this.file = h("input", {
      type: "file",
      accept: ".csv,.txt,.tsv,text/*",
      "aria-label": "Upload points as CSV",
      onchange: () => this.upload(),
    });
    this.words = h("p", { class: "csv-words", role: "status" });
    this.own = h(
      "div",
      { class: "own panel", hidden: true },
      h("p", {}, "One point per line, numbers separated by commas. Nothing leaves your computer."),
      this.text,
      h(
        "div",
        { class: "choices" },
        h(
          "button",
          { type: "button", class: "primary", onclick: () => this.read(this.text.value) },
          "Use these points",
        ),
        this.file,
        h("button", { type: "button", onclick: () => this.open(false) }, "Close"),
      ),
      this.words,
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
      this.own,
    );
  }

  open(on) {
    this.own.hidden = !on;
    if (!on) return;
    this.text.value = asText(this.model.state.points);
    this.text.focus();
  }

  choose(name) {
    this.open(!name);
    if (!name) return;
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

  async upload() {
    const [file] = this.file.files;
    this.file.value = "";
    if (!file) return;
    try {
      this.read(await textOf(file));
    } catch (error) {
      this.say(error);
    }
  }

  read(text) {
    try {
      const points = parsePoints(text);
      const k = Math.min(this.model.k, points.length);
      this.model.change({
        data: null,
        points,
        centers: startingCenters(points, k, 1, true),
        layer: 0,
        breaks: [],
      });
      this.words.textContent = `${points.length} points with ${points[0].length} numbers each.`;
      this.words.classList.remove("wrong");
      this.onnew();
    } catch (error) {
      this.say(error);
    }
  }

  say(error) {
    if (!(error instanceof Unreadable)) throw error;
    this.words.textContent = error.message;
    this.words.classList.add("wrong");
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
