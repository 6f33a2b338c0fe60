"""The command `crossfade`. Whatever is slow to import is imported by the command that needs it."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated, Any

import typer
from rich.text import Text

from crossfade import __version__
from crossfade.app.compare import compare
from crossfade.app.demo import demo
from crossfade.app.estimate import estimate
from crossfade.app.examine import doctor
from crossfade.app.machine import print_json
from crossfade.app.output import BAD_REQUEST, BUG, CODES, STOPPED, NotWritten
from crossfade.app.paper import paper, so_far
from crossfade.app.rank import rank
from crossfade.app.report_command import report
from crossfade.app.runs import COMMANDS, SO_FAR, extend, gather, resume, status, work
from crossfade.app.stopped import kept
from crossfade.app.terminal import console
from crossfade.types import CrossfadeError

DEBUG, JSON = "--debug", "--json"
UNFORESEEN = (
    "This is a bug in crossfade, or in a model that it was given: run it again with --debug to see where, and report "
    "it if it is ours."
)


class Commands(typer.core.TyperGroup):
    """The one place where errors become messages and exit codes."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """--debug may stand anywhere, since it is asked for when a command has failed."""
        ctx.meta.update({DEBUG: DEBUG in args, JSON: JSON in args})
        return super().parse_args(ctx, [arg for arg in args if arg != DEBUG])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CrossfadeError as error:
            ctx.meta[JSON] &= not isinstance(error, NotWritten)  # then the one object is there
            _failed(ctx, "Error:", str(error), "red", BAD_REQUEST)
        except KeyboardInterrupt as stop:
            _failed(ctx, "Stopped.", kept(stop), "yellow", STOPPED)
        except Exception as error:
            # Usage errors and exits are the parser's own, and a closed pipe is nobody's fault.
            if type(error).__module__.split(".")[0] in ("click", "typer") or isinstance(error, BrokenPipeError):
                raise
            what = " ".join(f"{type(error).__name__}: {error}".split())
            _failed(ctx, "Error:", f"{what}. {UNFORESEEN}", "red", BUG)


def _failed(ctx: Any, label: str, message: str, colour: str, code: int) -> None:
    if ctx.meta[DEBUG]:
        traceback.print_exc()
    console(stderr=True).print(Text(f"{label} {message}", style=colour))
    if ctx.meta[JSON]:
        print_json("error", error=message, exit_code=code)
    raise typer.Exit(code) from None


app = typer.Typer(
    name="crossfade",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bayes factors by fading one posterior into the other.",
    epilog="Exit codes: " + "; ".join(f"{code} {said}" for code, said in CODES.items()) + ".",
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
    debug: Annotated[bool, typer.Option(DEBUG, help="Show where an error came from; it may stand anywhere.")] = False,
) -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without a plus-minus sign gets a question mark


for command in (demo, compare, doctor, estimate, report, rank, resume, status, extend, gather, work, paper):
    app.command()(command)
COMMANDS |= {"compare": compare, "rank": rank, "paper": paper}
SO_FAR["paper"] = so_far


def main() -> None:
    app(prog_name="crossfade")


if __name__ == "__main__":
    main()
