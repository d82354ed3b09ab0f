"""What the site has besides the pages of docs/: the project's own files, the commands and the Python names.

They are made when the site is built, from the code that they describe, so that they cannot be out of date.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

PROJECT = Path(__file__).parent.parent.parent
PROJECT_FILES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
SHIM = "https://unpkg.com/iframe-worker/shim"
API = """
## Functions

::: dalenius.api
    options:
      members: [plan, publish, open_release, verify, audit, report, compare, Release]

## Values

{values}

## Errors

::: dalenius.errors
"""


def on_config(config: Any) -> Any:
    """A new page that nobody has put into the navigation is a guide or a proof, until somebody does."""
    sections = {name: entries for part in config.nav for name, entries in part.items()}
    known = {page for entries in sections.values() for entry in entries for page in entry.values()}
    docs = Path(config.docs_dir)
    for folder, section in (("", "How to"), ("proofs/", "Background"), ("concepts/", "Promises")):
        for path in sorted((docs / folder).glob("*.md")):
            if f"{folder}{path.name}" not in known:
                title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
                sections[section].append({title: f"{folder}{path.name}"})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the files of the project, and the page of all commands."""
    for name, page in PROJECT_FILES.items():
        text = (PROJECT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=move_links(text)))
    files.append(File.generated(config, "reference/commands.md", content=write_commands()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The names of Python go where their page says; links to the project's files go to their pages."""
    if page.file.src_uri == "python.md":
        return markdown.replace("<!-- generated: api -->", API.format(values=list_values()))
    return markdown


def on_post_build(config: Any) -> None:
    """The theme would load the stand-in for web workers from another server: ours is beside the pages."""
    site = Path(config.site_dir)
    for path in site.rglob("*.html"):
        up = "../" * (len(path.relative_to(site).parts) - 1)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(SHIM, f"{up}site/iframe-worker.js"), encoding="utf-8")


def list_values() -> str:
    """What the public functions give back, and what a policy is, wherever these classes are."""
    import typing

    from dalenius import api
    from dalenius.question.answer import AnswerRow

    functions = (api.Release.ask, api.verify, api.audit, api.compare, api.report)
    values = [*(typing.get_type_hints(one)["return"] for one in functions), AnswerRow, api.Policy]
    return "\n".join(f"::: {one.__module__}.{one.__qualname__}" for one in values)


def move_links(text: str) -> str:
    """Links of a file of the project as those of a page of the site."""
    text = re.sub(r"\]\(docs/", "](", text)
    for name, page in PROJECT_FILES.items():
        text = text.replace(f"]({name})", f"]({page})")
    return text


def write_commands() -> str:
    """Every command with its help, as the program itself prints it."""
    import click
    import typer

    from dalenius.cli.main import COMMANDS, application

    group: Any = typer.main.get_command(application(COMMANDS))
    parts = [
        "# All commands\n\nGenerated from the program: what `dalenius COMMAND --help` prints. "
        "[The command line](../command-line.md) explains them.\n"
    ]
    for name in COMMANDS:
        context = group.context_class(group.commands[name], info_name=f"dalenius {name}", terminal_width=96)
        text = click.unstyle(group.commands[name].get_help(context))
        parts.append(f"## {name}\n\n{COMMANDS[name]}\n\n```text\n{text.strip()}\n```\n")
    return "\n".join(parts)
