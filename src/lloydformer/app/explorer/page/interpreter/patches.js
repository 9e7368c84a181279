/** Patches: replace an intermediate in the layers that a pattern names. */

import { Matrix } from "./matrix.js";
import { quoted } from "./python_text.js";
import { Refusal } from "./refusal.js";

/** A replacement is a matrix {rows, cols, data}, or a function from the old one, and its name,
 * to the new one. */
export class Patch {
  constructor(pattern, replacement) {
    Object.assign(this, { pattern, replacement, expression: expressionOf(pattern) });
  }

  matches(name) {
    return this.expression.test(name);
  }

  /** The new value, of the shape of the old one. */
  apply(name, value) {
    const { replacement } = this;
    const found = typeof replacement === "function" ? replacement(value, name) : replacement;
    if (found?.rows !== value.rows || found?.cols !== value.cols) {
      const what = found?.data ? `shape (${found.rows}, ${found.cols})` : String(found);
      throw new Refusal(
        `patch ${quoted(name)}: found ${what}; pass a tensor of shape ` +
          `(${value.rows}, ${value.cols}), or a function that returns one`);
    }
    return found instanceof Matrix ? found : new Matrix(found.rows, found.cols, found.data);
  }
}

/** The patches of `hooks`, a map or an object from patterns to replacements. */
export function patchesOf(hooks, names) {
  const pairs = hooks instanceof Map ? [...hooks] : Object.entries(hooks ?? {});
  return pairs.map(([pattern, replacement]) => {
    const patch = new Patch(pattern, replacement);
    if (names.some((name) => patch.matches(name))) return patch;
    throw new Refusal(
      `patch: found ${quoted(pattern)}, which matches none of ${names.length} intermediates; ` +
        `try ${quoted(names[0])}`);
  });
}

/** A shell pattern as a regular expression: * is any text, ? is any letter. */
function expressionOf(pattern) {
  const escaped = pattern.replace(/[.+^${}()|\\]/g, "\\$&").replaceAll("[!", "[^");
  return new RegExp(`^${escaped.replaceAll("*", ".*").replaceAll("?", ".")}$`, "s");
}
