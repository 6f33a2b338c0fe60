"""The command `crossfade`. Whatever is slow to import is imported by the command that needs it."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.text import Text

from crossfade import __version__
from crossfade.app.compare import compare
from crossfade.app.demo import demo
from crossfade.app.estimate import estimate
from crossfade.app.examine import doctor
from crossfade.app.paper import paper
from crossfade.app.rank import rank
from crossfade.app.runs import COMMANDS, extend, gather, resume, status, work
from crossfade.app.stopped import kept
from crossfade.app.terminal import console
from crossfade.types import CrossfadeError


class Commands(typer.core.TyperGroup):
    """The one place where errors become messages and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CrossfadeError as error:
            console(stderr=True).print(Text(f"Error: {error}", style="red"))
            raise typer.Exit(2) from None
        except KeyboardInterrupt as stop:
            console(stderr=True).print(Text(f"Stopped. {kept(stop)}", style="yellow"))
            raise typer.Exit(130) from None


app = typer.Typer(
    name="crossfade",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Bayes factors by fading one posterior into the other.",
)


def print_version(asked: bool) -> None:
    if asked:
        print(f"crossfade {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without a plus-minus sign gets a question mark


for command in (demo, compare, doctor, estimate, rank, resume, status, extend, gather, work, paper):
    app.command()(command)
COMMANDS |= {"compare": compare, "rank": rank}


def main() -> None:
    app(prog_name="crossfade")


if __name__ == "__main__":
    main()
