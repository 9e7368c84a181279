"""What the commands do: fit and predict, the demo, benchmarks."""
