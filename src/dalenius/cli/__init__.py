"""The command line: one command a file, thin over the library."""

from dalenius.cli.main import main

__all__ = ["main"]
