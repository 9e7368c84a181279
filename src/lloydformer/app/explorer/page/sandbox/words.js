// Words for the parts of a recipe.
const SIDES = { encoder: "point", decoder: "center" };

/** "encoder_cross_1" -> {side, slot, asks, answers, title, line}. */
export function headWords(name) {
  const slot = name.replace(/_\d+$/, "");
  if (slot === "affinity") {
    return {
      slot,
      side: "encoder",
      asks: "point",
      answers: "center",
      title: "Affinity attention",
      line: "each point asks the centers again",
    };
  }
  const [side, kind] = slot.split("_");
  const asks = SIDES[side];
  const answers = kind === "self" ? asks : asks === "point" ? "center" : "point";
  const number = name === slot ? "" : ` ${Number(name.match(/\d+$/)[0]) + 1}`;
  const title = `${side === "encoder" ? "Encoder" : "Decoder"} ${kind}-attention${number}`;
  return { slot, side, asks, answers, title, line: `each ${asks} asks the ${answers}s` };
}

const SCORES = { Euclidean: "−|q − k|²", DotProduct: "⟨q, k⟩", Scaled: "scaled ⟨q, k⟩" };
const ACTIVATIONS = {
  LimitingSoftmax: "limiting soft-max",
  Softmax: "soft-max",
  Linear: "linear",
  NormMax: "norm-max",
  Sparsemax: "sparsemax",
  Gumbel: "Gumbel soft-max",
  TopK: "top-k",
  Identity: "identity",
  LogSoftmax: "log soft-max",
  Ranked: "one rank",
  FirstOfEquals: "first of equals",
};

export const scoreWords = (score) => SCORES[score?.part] ?? String(score?.part ?? "none");
export const activationWords = (activation) =>
  ACTIVATIONS[activation?.part] ?? String(activation?.part ?? "none");

const SUBSPACES = { squared_norm: "squared norm", log_belonging: "log belonging" };
export const subspaceWords = (name) => SUBSPACES[name] ?? name.replaceAll("_", " ");

/** What a head adds to its stream: "writes assignment", "erases position". */
export function effect(head) {
  const blocks = head.value?.blocks ?? [];
  if (!blocks.length) return "adds learned values";
  const wipes = blocks.every((block) => block.coefficient < 0);
  const names = [...new Set(blocks.map((block) => subspaceWords(block.target.name)))];
  return `${wipes ? "erases the old" : "writes the new"} ${names.join(", ")}`;
}

/** The heads of a recipe by name, in the order of the figure. */
export function headsOf(recipe) {
  const slots = ["encoder_cross", "encoder_self", "affinity", "decoder_cross", "decoder_self"];
  return Object.fromEntries(
    slots
      .filter((slot) => recipe[slot])
      .flatMap((slot) => [
        [slot, recipe[slot]],
        ...(recipe[slot].beside ?? []).map((head, i) => [`${slot}_${i + 1}`, head]),
      ]),
  );
}
