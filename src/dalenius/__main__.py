"""`python -m dalenius`, where the script `dalenius` is not on the path."""

from dalenius.cli import main

if __name__ == "__main__":
    main()
