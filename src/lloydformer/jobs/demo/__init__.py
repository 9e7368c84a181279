"""What `lloydformer demo` clusters, and the page that shows it."""
