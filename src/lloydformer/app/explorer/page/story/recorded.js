// Runs that were recorded with Python, side by side: learned layers, and relocation, beside Lloyd.
import { h, short } from "../dom.js";
import { HeatMap } from "../heatmap.js";
import { Hover } from "../hover.js";
import { clusterTriple, mixed, onTheme } from "../palette.js";
import { Plot } from "../plot.js";
import { Projection } from "../projection.js";
import { Player } from "../sandbox/player.js";
import learned from "../traces/learned.js";
import relocation from "../traces/relocation.js";

const matrix = (rows) => ({
  rows: rows.length,
  cols: rows[0].length,
  data: Float64Array.from(rows.flat(), (x) => x / 1000),
});
const empty = (rows, cols) => ({ rows, cols, data: new Float64Array(rows * cols) });

/** The recorded points and runs with the points of a group beside each other, so that maps show blocks. */
function grouped({ points, runs, ...rest }) {
  const last = runs.at(-1).labels.at(-1);
  const order = points.map((_, i) => i).sort((a, b) => last[a] - last[b] || a - b);
  const sorted = (rows) => order.map((i) => rows[i]);
  const layer = ({ recipe, assignments, update }) => ({
    recipe,
    assignments: sorted(assignments),
    update: update?.map(sorted),
  });
  return {
    ...rest,
    points: sorted(points),
    runs: runs.map((run) => ({ ...run, layers: run.layers.map(layer) })),
  };
}

/** One run: its plot, the attention of the layer, the objective. */
class Run {
  constructor(run, points, projection, hover) {
    Object.assign(this, { run, projection });
    this.places = points.map((p) => projection.seen(p));
    this.plot = new Plot(run.title);
    this.plot.fit([...this.places, ...run.centers.flat().map((c) => projection.seen(c))]);
    this.assign = new HeatMap({
      title: "Points ask centers",
      hover,
      rows: "point",
      columns: "center",
    });
    this.update = new HeatMap({
      title: "Centers ask points",
      hover,
      rows: "center",
      columns: "point",
    });
    this.words = h("p", { class: "run-words" });
    this.root = h(
      "article",
      { class: "panel run" },
      h("h3", {}, run.title),
      this.plot.root,
      this.words,
      h("div", { class: "run-maps" }, this.assign.root, this.update.root),
    );
    hover.listen((seen) => this.plot.light(seen?.kind, seen?.index));
    this.plot.svg.addEventListener("pointermove", (event) => {
      const { point, center } = event.target.closest("[data-point], [data-center]")?.dataset ?? {};
      hover.look(
        point !== undefined
          ? { kind: "point", index: Number(point) }
          : center !== undefined
            ? { kind: "center", index: Number(center) }
            : null,
      );
    });
    this.plot.svg.addEventListener("pointerleave", () => hover.look(null));
  }

  show(layer, glide) {
    const { centers, layers, objective } = this.run;
    const now = layer > 0 ? layers[layer - 1] : null;
    const [n, k] = [this.places.length, centers[0].length];
    this.plot.glide(glide);
    this.plot.showPoints(
      this.places,
      this.places.map((_, i) => (now ? `rgb(${mixed(now.assignments[i])})` : null)),
      null,
    );
    this.plot.showCenters(
      centers[0].map((_, j) =>
        centers.slice(0, layer + 1).map((rows) => this.projection.seen(rows[j])),
      ),
    );
    this.assign.show(now ? matrix(now.assignments) : empty(n, k), {
      tint: (i, j) => clusterTriple(j),
    });
    this.update.show(now?.update ? matrix(now.update) : empty(k, n), {
      tint: (j) => clusterTriple(j),
    });
    const part =
      now && layers.some((one) => one.recipe !== now.recipe)
        ? ` · this layer: ${now.recipe}${now.update ? "" : "; colours from before it"}`
        : "";
    this.words.replaceChildren("objective ", h("b", {}, short(objective[layer], 4)), part);
  }
}

function comparison({ name, title, says, points, runs }) {
  const hover = new Hover();
  const projection = new Projection(points);
  const views = runs.map((run) => new Run(run, points, projection, hover));
  const last = runs[0].layers.length;
  const show = (layer, glide = true) => {
    player.show(layer, last);
    views.forEach((view) => view.show(layer, glide));
  };
  const player = new Player(show);
  show(last, false);
  onTheme(() => show(player.layer, false));
  return h(
    "section",
    { class: "recorded", id: name, "aria-labelledby": `${name}-title` },
    h("h2", { id: `${name}-title` }, title),
    h("p", { class: "says" }, says),
    player.root,
    h(
      "div",
      { class: "runs" },
      views.map((view) => view.root),
    ),
  );
}

export function showRecorded(root) {
  root.replaceChildren(comparison(grouped(learned)), comparison(grouped(relocation)));
}
