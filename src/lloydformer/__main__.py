"""`python -m lloydformer` is `lloydformer`."""

from lloydformer.app.cli.app import main

if __name__ == "__main__":
    main()
