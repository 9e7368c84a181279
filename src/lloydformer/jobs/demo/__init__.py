"""`lloydformer demo`: its data, the runs of the circuits, and the page."""
