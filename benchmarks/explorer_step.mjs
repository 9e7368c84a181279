/**
 * Times a layer of every recipe that the explorer's page runs, and of Lloyd's algorithm with every
 * activation of the menu in self-attention, the largest head: node benchmarks/explorer_step.mjs [n]
 */

import { Circuit, withPart } from "../src/lloydformer/app/explorer/page/interpreter/index.js";
import { MENU, RECIPES } from "../src/lloydformer/app/explorer/page/recipes.js";
import { uniform } from "../src/lloydformer/app/explorer/page/interpreter/noise.js";

const [n, k, repeats] = [Number(process.argv[2] ?? 500), 5, 15];
const points = uniform(0, 0, "drawn", n, 2).map((u) => 2 * u - 1).toRows();
const directions = points.map((row) => row.map((x) => x / Math.hypot(...row)));

function milliseconds(recipe) {
  const rows = recipe.norm ? directions : points;
  const circuit = new Circuit(recipe, { nFeatures: 2, nClusters: k });
  const times = Array.from({ length: repeats }, () => {
    const start = performance.now();
    circuit.run(rows, rows.slice(0, k), { nLayers: 1, seed: 0 });
    return performance.now() - start;
  });
  return Math.min(...times).toFixed(1).padStart(7);
}

console.log(`milliseconds of a layer, ${n} points, ${k} centers, the best of ${repeats} runs`);
for (const { name, recipe } of RECIPES.filter((each) => each.live)) {
  console.log(milliseconds(recipe), name);
}
const lloyd = RECIPES.find((each) => each.name === "lloyd").recipe;
const { activation } = MENU.find((each) => each.slot === "encoder_self").parts;
for (const { title, part } of activation.filter((each) => each.part.part !== "Linear")) {
  console.log(milliseconds(withPart(lloyd, "encoder_self.activation", part)), `self: ${title}`);
}
