"""The paper made again: one module for each table and figure, with the paper's numbers beside."""
