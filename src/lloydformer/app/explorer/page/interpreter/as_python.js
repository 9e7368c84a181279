/** Python code that makes the same circuit and trace, for any combination of parts. */

import { KNOWN } from "../recipes.js";
import { partAt, withPart } from "./change.js";
import { Circuit } from "./circuit.js";
import { identify, sameParts } from "./identify.js";
import { MODULES } from "./parts.js";
import { patchesOf } from "./patches.js";
import { floatText, pythonText, quoted } from "./python_text.js";

/** Arguments of makers, and where their values stand in the recipe. */
const ARGUMENTS = {
  lloyd: { ties: "encoder_cross.activation.ties" },
  lloyd_dot: { ties: "encoder_cross.activation.ties" },
  lloyd_binary: {},
  spherical: { ties: "encoder_cross.activation.ties" },
  soft: { inverse_temperature: "encoder_cross.activation.inverse_temperature" },
  soft_dot: { inverse_temperature: "encoder_cross.activation.inverse_temperature" },
  trimmed: {
    keep: "decoder_cross.activation.keep",
    separation: "decoder_cross.separation",
    ties: "encoder_cross.activation.ties",
  },
  robust: {
    inverse_temperature: "decoder_cross.activation.inverse_temperature",
    separation: "decoder_cross.separation",
    ties: "encoder_cross.activation.ties",
  },
  robust_lifted: {
    inverse_temperature: "decoder_cross.activation.inverse_temperature",
    separation: "affinity.separation",
    ties: "encoder_cross.activation.ties",
  },
  medoids: { separation: "decoder_cross.separation", ties: "encoder_cross.activation.ties" },
};

/**
 * @param {object} state
 * @param {object} state.recipe JSON of the recipe
 * @param {ArrayLike<number>[]} state.points
 * @param {ArrayLike<number>[]} state.centers the first ones
 * @param {number} [state.nLayers]
 * @param {?number} [state.seed]
 * @param {import("./interventions.js").Intervention[]} [state.interventions]
 * @returns {string} code that ends with `trace`, which holds every intermediate
 */
export function asPython(state) {
  const { recipe, points, centers, nLayers = 10, seed = null, interventions = [] } = state;
  const imports = new Set();
  const made = recipeText(recipe, imports);
  const [d, k] = [points[0].length, centers.length];
  const circuit = new Circuit(recipe, { nFeatures: d, nClusters: k });
  const call = (keep) =>
    `circuit(points, centers, n_layers=${nLayers}, names_filter=${keep}, seed=${seed ?? "None"})`;
  const run = patchedRun(circuit, interventions, { points, centers, nLayers, seed, call, imports });
  return [
    ...(made.includes("replace(") ? ["from dataclasses import replace"] : []),
    ...(run.includes("ExitStack(") ? ["from contextlib import ExitStack"] : []),
    "import torch",
    "import lloydformer as lf",
    ...importLines(imports),
    "",
    `points = torch.tensor(${rowsText(points)}, dtype=torch.float64)`,
    `centers = torch.tensor(${rowsText(centers)}, dtype=torch.float64)`,
    made,
    `circuit = lf.Circuit(recipe, n_features=${d}, n_clusters=${k})`,
    run,
    "print(trace.objective.tolist())",
    "",
  ].join("\n");
}

function rowsText(rows) {
  return `[${Array.from(rows, (row) => `[${Array.from(row, floatText).join(", ")}]`).join(", ")}]`;
}

/** `recipe = ...`: a call of a maker, or a shipped recipe with parts replaced. */
function recipeText(recipe, imports) {
  const same = KNOWN.filter(({ name }) => name === identify(recipe));
  const call = same.map((known) => makerCall(known, recipe, imports)).find(Boolean);
  if (call) return `recipe = ${call}`;
  const differing = ({ recipe: base }) =>
    Object.keys(base).filter((field) => !sameParts(base[field], recipe[field])).length;
  const base = KNOWN.reduce((a, b) => (differing(b) < differing(a) ? b : a));
  return [`base = ${makerCall(base, base.recipe, imports)}`,
    `recipe = ${replacement("base", base.recipe, recipe, imports)}`].join("\n");
}

/** The call that makes this recipe, if the maker of a known one does so; null otherwise. */
function makerCall({ name, recipe: base }, recipe, imports) {
  if (!(name in ARGUMENTS)) return sameParts(base, recipe) ? `lf.recipes.${name}()` : null;
  let made = base;
  const values = [];
  for (const [argument, path] of Object.entries(ARGUMENTS[name])) {
    const value = valueAt(recipe, path);
    if (value === undefined) return null;
    made = withPart(made, path, value);
    values.push(`${argument}=${pythonText(value, true)}`);
  }
  if (base.norm) values.push(`norm=${base.norm.part === "LayerNorm" ? '"layer"' : '"rms"'}`);
  if (name.startsWith("robust")) values.push(`activation=${weighting(made, recipe, imports)}`);
  if (base.decoder_cross.activation.part === "TopK") {
    made = withPart(made, "decoder_cross.activation.m", recipe.decoder_cross.activation.m ?? 1);
  }
  return sameParts(made, recipe) ? `lf.recipes.${name}(${values.join(", ")})` : null;
}

function weighting(made, recipe, imports) {
  const { part, m } = recipe.decoder_cross.activation;
  if (part !== "TopK") return quoted(part.toLowerCase());
  imports.add("TopK");
  return `TopK(${m})`;
}

function valueAt(recipe, path) {
  try {
    return partAt(recipe, path);
  } catch {
    return undefined;
  }
}

/** `replace(base, field=...)` with the fields that differ, and so on inside of heads. */
function replacement(path, base, wanted, imports) {
  const changes = Object.keys(wanted)
    .filter((field) => field !== "part" && field !== "algorithm" && field !== "appendix")
    .filter((field) => JSON.stringify(base[field]) !== JSON.stringify(wanted[field]))
    .map((field) => {
      const [old, part] = [base[field], wanted[field]];
      const inside = old?.part === "Head" && part?.part === "Head";
      const text = inside ? replacement(`${path}.${field}`, old, part, imports)
        : partText(part, imports);
      return `${field}=${text}`;
    });
  return `replace(${[path, ...changes].join(", ")})`;
}

function partText(part, imports) {
  const collect = (value) => {
    if (Array.isArray(value)) value.forEach(collect);
    else if (value?.part) {
      imports.add(value.part === "Subspace" ? subspaceText(value.name).split("(")[0] : value.part);
      Object.values(value).forEach((inner) => value.part !== "Subspace" && collect(inner));
    }
  };
  collect(part);
  const text = pythonText(part, typeof part === "number");
  return text.replace(/\b(LOG_)?BELONGING_\d+\b/g, (name) => subspaceText(name.toLowerCase()));
}

/** The name of a subspace in Python: POSITION, or belonging(0) for those of several heads. */
function subspaceText(name) {
  const [, kind, head] = name.match(/^((?:log_)?belonging)_(\d+)$/) ?? [];
  return kind ? `${kind}(${head})` : name.toUpperCase();
}

function importLines(names) {
  const lines = new Map();
  for (const name of [...names].sort()) {
    const module = MODULES[name] ?? MODULES.Subspace;
    lines.set(module, [...(lines.get(module) ?? []), name]);
  }
  return [...lines].sort().map(([module, found]) => `from ${module} import ${found.join(", ")}`);
}

/** The run, inside of the patches of the interventions. */
function patchedRun(circuit, interventions, { points, centers, nLayers, seed, call, imports }) {
  if (!interventions.length) return `trace = ${call('"*"')}`;
  const names = circuit.run(points, centers, { nLayers, seed }).names();
  const frozen = interventions.some(({ kind }) => kind === "freeze");
  const patches = interventions.flatMap((one) => {
    const matching = patchesOf({ [one.name]: null }, names)[0];
    return patchTexts(one, names.filter((name) => matching.matches(name)), imports);
  });
  return [
    ...(frozen ? [`before = ${call('"*"')}`] : []),
    "with ExitStack() as patches:",
    ...patches.map(([name, text]) =>
      `    patches.enter_context(circuit.patch(${quoted(name)}, ${text}))`),
    `    trace = ${call('"*"')}`,
  ].join("\n");
}

/** The names and replacements of an intervention. */
function patchTexts({ kind, name, subspace, layer, rows }, matching, imports) {
  if (kind === "freeze") {
    return matching.map((one) =>
      [one, `before[${quoted(one.replace(/^layers\.\d+/, `layers.${layer}`))}]`]);
  }
  if (kind === "set") return [[name, `torch.tensor(${rowsText(rows)}, dtype=torch.float64)`]];
  if (!subspace) return [[name, "torch.zeros_like"]];
  const space = subspaceText(subspace);
  imports.add(space.split("(")[0]);
  return [[name, `lambda t: circuit.space.write(t, ${space}, 0 * circuit.space.read(t, ${space}))`]];
}
