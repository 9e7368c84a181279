"""The parts of the transformer, from the subspaces of a token to a circuit of many layers."""
