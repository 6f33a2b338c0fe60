"""Calling the command line from tests."""

from typer.testing import CliRunner

from crossfade.app import cli


def run(*arguments: object):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def words(text: str) -> str:
    """Text without the line breaks of the page."""
    return " ".join(text.split())
