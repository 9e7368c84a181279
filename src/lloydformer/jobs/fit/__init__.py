"""`lloydformer fit`: the request, the runs, the result, its files and its page."""
