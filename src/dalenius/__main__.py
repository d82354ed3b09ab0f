"""`python -m dalenius`, where the script `dalenius` is not on the path."""

from dalenius.cli import main

main()
