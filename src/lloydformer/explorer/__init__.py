"""The explorer: a static page that runs recipes in the browser, and what Python adds to it."""
