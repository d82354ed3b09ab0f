"""A release in other people's tools: a DuckDB file, PostgreSQL, or CSV, with a view whose weights add up."""

from dalenius.export.exporting import Exported, export_release

__all__ = ["Exported", "export_release"]
