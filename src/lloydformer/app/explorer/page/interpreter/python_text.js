/** Numbers, texts and parts as Python writes them, for messages with Python's words. */

import { PARTS } from "./parts.js";

/** A float as `repr` writes it: 1.0, 1e-07, inf. */
export function floatText(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-4 || size >= 1e16)) {
    const [digits, power] = value.toExponential().split("e");
    return `${digits}e${exponent(power)}`;
  }
  const text = size >= 1e21 ? String(BigInt(value)) : plainDigits(value);
  return text.includes(".") ? text : `${text}.0`;
}

function plainDigits(value) {
  const text = String(value);
  return text.includes("e") ? value.toFixed(20).replace(/0+$/, "") : text;
}

function exponent(power) {
  const sign = power.startsWith("-") ? "-" : "+";
  return sign + power.replace(/^[+-]/, "").padStart(2, "0");
}

/** A number as the format `.{digits}g` writes it. */
export function general(value, digits = 6) {
  if (!Number.isFinite(value)) return floatText(value);
  if (value === 0) return "0";
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  if (Number(power) < -4 || Number(power) >= digits) {
    return `${trimmed(mantissa)}e${exponent(power)}`;
  }
  return trimmed(value.toFixed(Math.max(0, digits - 1 - Number(power))));
}

function trimmed(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A value of a field as `repr` writes it. float: whether the field holds a float. */
export function pythonText(value, float = false) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return float ? floatText(value) : String(value);
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return tupleText(value, float);
  if (value.part === "Subspace") return value.name.toUpperCase();
  const fields = Object.entries(PARTS[value.part]);
  return `${value.part}(${fields.map(([name, kind]) => `${name}=${pythonText(value[name], kind === "float")}`).join(", ")})`;
}

function tupleText(values, float) {
  const inner = values.map((one) => pythonText(one, float)).join(", ");
  return values.length === 1 ? `(${inner},)` : `(${inner})`;
}

export function quoted(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  return mark + text.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`) + mark;
}

/** A list of texts as `repr` writes it. */
export function listText(texts) {
  return `[${texts.map(quoted).join(", ")}]`;
}
