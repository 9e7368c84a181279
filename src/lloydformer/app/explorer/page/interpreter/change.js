/** Read and replace parts of a recipe by a path such as "decoder_cross.activation.keep". */

/** The value at a path. */
export function partAt(recipe, path) {
  return path.split(".").reduce((part, field) => part[field], recipe);
}

/** A new recipe with the value at a path replaced; what was stated for other parts is cleared. */
export function withPart(recipe, path, value) {
  const changed = replaced(recipe, path.split("."), value);
  const stated = JSON.stringify(changed) === JSON.stringify(recipe);
  return stated ? recipe : { ...changed, algorithm: "", appendix: "" };
}

function replaced(part, [field, ...rest], value) {
  if (!(field in part)) throw new Error(`${part.part} has no ${field}`);
  return { ...part, [field]: rest.length ? replaced(part[field], rest, value) : value };
}
