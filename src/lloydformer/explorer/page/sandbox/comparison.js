// The plain algorithm beside the circuit.
export function compare() {
  return null;
}
