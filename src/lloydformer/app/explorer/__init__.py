"""The explorer: a static page that runs recipes in the browser, and what Python adds to it.

The page is in `page/`, plain JavaScript without a build step; tools/explorer_data.py writes its
generated files. `page_files.py` puts a first state into it, `server.py` and `embedded.py` show it.
May import `circuits`, and the public names.
"""
