"""`lloydformer bench`: time fits of several libraries on the same data, start and threads."""
