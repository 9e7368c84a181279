/**
 * Interventions: patches that can be written as JSON, and the hooks that they stand for.
 *
 *   {kind: "ablate", name}              zeros in place of the intermediate
 *   {kind: "ablate", name, subspace}    zeros in the columns of one subspace (tokens, queries, ...)
 *   {kind: "freeze", name, layer}       its value in this layer of the run without interventions
 *   {kind: "set", name, rows}           these numbers
 *
 * `name` may be a pattern: "layers.*.decoder_cross.output".
 */

import { Matrix } from "./matrix.js";
import { Refusal } from "./refusal.js";

/** @typedef {{kind: "ablate" | "freeze" | "set", name: string, subspace?: string, layer?: number,
 *   rows?: number[][]}} Intervention */

/**
 * The hooks of a list of interventions.
 * @param {Intervention[]} interventions
 * @param {import("./circuit.js").Circuit} circuit
 * @param {() => import("./trace.js").Trace} undisturbed runs the circuit without interventions
 * @returns {Map<string, Function>} several on one name act one after the other
 */
export function hooksOf(interventions, circuit, undisturbed) {
  const hooks = new Map();
  let trace = null;
  const before = () => (trace ??= undisturbed());
  for (const one of interventions) {
    if (!(one.kind in HOOKS)) throw new Refusal(`intervention: found kind ${one.kind}`);
    const [earlier, hook] = [hooks.get(one.name), HOOKS[one.kind](one, circuit, before)];
    hooks.set(one.name, earlier ? (value, name) => hook(earlier(value, name), name) : hook);
  }
  return hooks;
}

const HOOKS = {
  ablate: ({ subspace }, circuit) => (value) =>
    subspace ? withoutSubspace(value, circuit.space, subspace)
      : new Matrix(value.rows, value.cols),
  freeze: ({ layer }, circuit, undisturbed) => (value, name) =>
    undisturbed().get(name.replace(/^layers\.\d+/, `layers.${layer}`)),
  set: ({ rows }) => () => Matrix.fromRows(rows),
};

function withoutSubspace(value, space, subspace) {
  const [start, stop] = space.span(subspace);
  return space.write(value, subspace, new Matrix(value.rows, stop - start));
}
