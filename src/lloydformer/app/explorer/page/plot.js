// The plot of points and centers, by hand in SVG. Coordinates here are of the plane; y points upwards.
import { h, s, set } from "./dom.js";
import { clusterColour, inkOn } from "./palette.js";
import { regions } from "./regions.js";

export const SIZE = 400;
const MARGIN = 26;

const rounded = (value) => Math.round(value * 100) / 100;
const path = (places) => places.map((p) => p.map(rounded).join(",")).join(" ");

export class Plot {
  constructor(label) {
    this.groups = Object.fromEntries(
      ["regions", "rays", "points", "trails", "centers", "over"].map((name) => [
        name,
        s("g", { class: name }),
      ]),
    );
    this.svg = s(
      "svg",
      { class: "plot", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": label },
      Object.values(this.groups),
    );
    this.root = h("div", { class: "plot-box" }, this.svg);
    this.points = [];
    this.centers = [];
    this.fit([
      [0, 0],
      [1, 1],
    ]);
  }

  /** Chooses the scale so that all these places are seen. */
  fit(places) {
    const ends = [0, 1].map((axis) => {
      const values = places.map((p) => p[axis]).filter(Number.isFinite);
      return [Math.min(...values), Math.max(...values)];
    });
    const span = Math.max(...ends.map(([low, high]) => high - low)) || 1;
    this.scale = (SIZE - 2 * MARGIN) / span;
    this.middle = ends.map(([low, high]) => (low + high) / 2);
  }

  screen([x, y]) {
    return [
      SIZE / 2 + this.scale * (x - this.middle[0]),
      SIZE / 2 - this.scale * (y - this.middle[1]),
    ];
  }

  /** The place in the plane under a pointer, kept inside of the frame. */
  place(event) {
    const box = this.svg.getBoundingClientRect();
    const at = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height].map(
      (share) => SIZE * Math.min(0.985, Math.max(0.015, share)),
    );
    return [
      this.middle[0] + (at[0] - SIZE / 2) / this.scale,
      this.middle[1] - (at[1] - SIZE / 2) / this.scale,
    ];
  }

  /** Draws points with their colours; `counts` in 0..1 tells how much each counts for its center. */
  showPoints(places, colours, counts) {
    const { points: group } = this.groups;
    const radius = places.length > 250 ? 3 : places.length > 120 ? 4 : 5;
    while (this.points.length > places.length) this.points.pop().remove();
    while (this.points.length < places.length) {
      this.points.push(
        group.appendChild(s("circle", { class: "point", "data-point": this.points.length })),
      );
    }
    places.forEach((place, i) => {
      const [cx, cy] = this.screen(place).map(rounded);
      const dot = this.points[i];
      const out = counts && counts[i] < 1e-9;
      dot.setAttribute(
        "class",
        `point${colours[i] ? "" : " unasked"}${out && colours[i] ? " left-out" : ""}`,
      );
      set(dot, { cx, cy, r: radius });
      dot.style.fill = colours[i] && !out ? colours[i] : "";
      dot.style.stroke = out && colours[i] ? colours[i] : "";
      dot.style.fillOpacity = counts && !out ? 0.35 + 0.65 * counts[i] : 1;
    });
  }

  /** Draws centers at the end of their paths, a path being the places of layers 0, 1, ... */
  showCenters(paths) {
    this.groups.trails.replaceChildren(
      ...paths.flatMap((places, j) =>
        this.trail(
          places.map((p) => this.screen(p)),
          j,
        ),
      ),
    );
    while (this.centers.length > paths.length) this.centers.pop().remove();
    while (this.centers.length < paths.length)
      this.centers.push(this.groups.centers.appendChild(this.center(this.centers.length)));
    paths.forEach((places, j) => {
      const last = places.filter((p) => p.every(Number.isFinite)).at(-1) ?? this.middle;
      const [x, y] = this.screen(last).map((at) => rounded(Math.min(SIZE - 8, Math.max(8, at))));
      this.centers[j].style.transform = `translate(${x}px, ${y}px)`;
      this.centers[j].classList.toggle("lost", !places.at(-1).every(Number.isFinite));
    });
  }

  center(j) {
    return s(
      "g",
      { class: "center", "data-center": j },
      s("circle", { r: 10.5, fill: clusterColour(j) }),
      s("text", { style: `fill:${inkOn(j)}` }, String(j + 1)),
    );
  }

  trail(places, j) {
    const seen = places.filter((p) => p.every(Number.isFinite));
    if (seen.length < 2) return [];
    const colour = clusterColour(j);
    const steps = seen.slice(0, -1).map(([cx, cy], t) =>
      s("circle", {
        cx: rounded(cx),
        cy: rounded(cy),
        r: t ? 2.8 : 4.5,
        fill: t ? colour : "var(--paper)",
        stroke: t ? "var(--paper)" : colour,
        "stroke-width": t ? 1 : 2.5,
      }),
    );
    return [
      s("polyline", { class: "halo", points: path(seen) }),
      s("polyline", { class: "trail", points: path(seen), stroke: colour }),
      ...steps,
    ];
  }

  /** Shades what belongs to each center; `score` is "Euclidean" or "DotProduct", or null for no regions. */
  showRegions(centers, score) {
    const corners = [
      [0, 0],
      [SIZE, 0],
      [SIZE, SIZE],
      [0, SIZE],
    ].map(([x, y]) => [
      this.middle[0] + (x - SIZE / 2) / this.scale,
      this.middle[1] - (y - SIZE / 2) / this.scale,
    ]);
    const shapes = score ? regions(centers, corners, score) : [];
    this.groups.regions.replaceChildren(
      ...shapes.map((corner, j) =>
        s("polygon", {
          class: "region",
          points: path(corner.map((p) => this.screen(p))),
          fill: clusterColour(j),
        }),
      ),
    );
  }

  /** Lines of attention: [{from, to, weight, colour}], places in the plane. */
  showRays(rays) {
    const strongest = Math.max(...rays.map((ray) => ray.weight), 1e-12);
    const thick = rays.length > 12 ? 1.6 : 3.4;
    this.groups.rays.replaceChildren(
      ...rays
        .filter((ray) => ray.weight > 1e-4 * strongest)
        .map((ray) => {
          const [[x1, y1], [x2, y2]] = [this.screen(ray.from), this.screen(ray.to)];
          const share = ray.weight / (ray.top ?? strongest);
          return s("line", {
            x1,
            y1,
            x2,
            y2,
            stroke: ray.colour,
            "stroke-width": 0.6 + thick * share,
            "stroke-opacity": 0.25 + 0.65 * share,
          });
        }),
    );
  }

  light(kind, index) {
    this.svg.querySelectorAll(".lit").forEach((lit) => lit.classList.remove("lit"));
    const mark = { point: this.points, center: this.centers }[kind]?.[index];
    mark?.classList.add("lit");
  }

  /** Whether changes glide from now on. */
  glide(on) {
    this.svg.classList.toggle("moving", on);
  }
}
