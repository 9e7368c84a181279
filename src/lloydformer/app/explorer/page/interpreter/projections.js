/** Query, key and value matrices: sums of blocks between named subspaces, or learned ones. */

import { floatText, pythonText } from "./python_text.js";
import { Matrix } from "./matrix.js";
import { Refusal } from "./refusal.js";

/** The entries of a block before it is scaled. */
const ENTRIES = {
  Block: (i, j) => (i === j ? 1 : 0),
  Average: (i, j, columns) => 1 / columns,
};

export function checkProjection({ blocks }) {
  const powers = [...new Set(blocks.map((b) => b.power).filter(Boolean))].sort((a, b) => a - b);
  if (powers.length > 1) {
    const found = powers.map(floatText).join(", ");
    throw new Refusal(`blocks: found powers [${found}] of the separation; use one`);
  }
  for (const { target, number } of blocks.filter((b) => b.number)) {
    const others = blocks.filter((b) => b.target.name === target.name);
    if (others.some((b) => pythonText(b.number) !== pythonText(number))) {
      throw new Refusal(
        `blocks: found several numbers for ${target.name.toUpperCase()}; use one`);
    }
  }
}

const blocksOf = (projection) => projection.blocks ?? [];

/** The names of the subspaces that a projection reads or writes. */
export function subspacesOf(projection) {
  return new Set(blocksOf(projection).flatMap((b) => [b.source.name, b.target.name]));
}

/** The power of the separation in its blocks; 0 if there is none. */
export function powerOf(projection) {
  return Math.max(0, ...blocksOf(projection).map((b) => b.power));
}

/** The numbers of a modulation, by the subspace that they multiply. */
export function numbersOf(projection) {
  const numbered = blocksOf(projection).filter((b) => b.number);
  return new Map(numbered.map((b) => [b.target.name, b.number]));
}

/** The matrix of the blocks with the separation, or of those without it. */
export function matrixOf(projection, space, separated = false) {
  const matrix = new Matrix(space.dim, space.dim);
  for (const block of projection.blocks.filter((b) => Boolean(b.power) === separated)) {
    const [top, bottom] = space.span(block.target.name);
    const [left, right] = space.span(block.source.name);
    for (let i = top; i < bottom; i++) {
      for (let j = left; j < right; j++) {
        const entry = ENTRIES[block.part](i - top, j - left, right - left);
        matrix.data[i * space.dim + j] += block.coefficient * entry;
      }
    }
  }
  return matrix;
}
