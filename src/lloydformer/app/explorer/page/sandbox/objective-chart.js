// The objective of every layer: the circuit's as a line, the plain algorithm's as rings on it.
import { s, set, short } from "../dom.js";

const [WIDTH, HEIGHT] = [360, 112];
const FRAME = { left: 46, right: WIDTH - 12, top: 10, bottom: HEIGHT - 22 };

export class ObjectiveChart {
  constructor() {
    this.svg = s("svg", {
      class: "chart",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": "Objective by layer",
    });
  }

  /** `circuit` and `plain`: objectives after 0, 1, ... layers; `plain` may be null. */
  show(circuit, plain, layer) {
    const values = [...circuit, ...(plain ?? [])].filter(Number.isFinite);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    const x = (t) =>
      FRAME.left + ((FRAME.right - FRAME.left) * t) / Math.max(1, circuit.length - 1);
    const y = (v) =>
      FRAME.bottom - ((FRAME.bottom - FRAME.top) * (v - low + pad)) / (high - low + 2 * pad);
    const line = [...circuit].map((v, t) => [x(t), y(v)]).filter((p) => p.every(Number.isFinite));
    const ticks = [...new Set([0, Math.round((circuit.length - 1) / 2), circuit.length - 1])];
    this.svg.replaceChildren(
      s("path", { class: "axis", d: `M${FRAME.left},${FRAME.top}V${FRAME.bottom}H${FRAME.right}` }),
      ...[high, low].map((v, i) =>
        s(
          "text",
          { class: "tick", x: FRAME.left - 5, y: y(v) + (i ? 2 : 6), "text-anchor": "end" },
          short(v),
        ),
      ),
      ...ticks.map((t) =>
        s("text", { class: "tick", x: x(t), y: HEIGHT - 7, "text-anchor": "middle" }, String(t)),
      ),
      s("line", { class: "cursor", x1: x(layer), x2: x(layer), y1: FRAME.top, y2: FRAME.bottom }),
      s("polyline", { class: "line", points: line.map((p) => p.join(",")).join(" ") }),
      ...[...(plain ?? [])]
        .map((v, t) =>
          Number.isFinite(v) ? s("circle", { class: "plain", cx: x(t), cy: y(v), r: 4.5 }) : null,
        )
        .filter(Boolean),
      ...line.map(([cx, cy], t) =>
        s("circle", { class: t === layer ? "now" : "step", cx, cy, r: t === layer ? 4.5 : 2.2 }),
      ),
    );
    set(this.svg, {
      "aria-label": `Objective by layer, from ${short(circuit[0])} to ${short(circuit.at(-1))}; after layer ${layer}: ${short(circuit[layer], 5)}`,
    });
  }
}
