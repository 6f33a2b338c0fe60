"""`crossfade resume`, `status`, `extend` and `gather`: runs in folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from crossfade.app.compared import compared, models_of, ranked, written_out
from crossfade.app.machine import NO_ANSWER, print_json
from crossfade.app.options import Json, Quiet
from crossfade.app.terminal import console
from crossfade.app.words import with_error
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate

COMMAND = "command.json"
PATHS = ("out", "plot", "report", "scheduler_file")  # as text in the folder
MAY_CHANGE = {"target_se", "budget", "sensitivity", "top", "log_prior_odds", "model_prior", "as_json", *PATHS}
MAY_CHANGE |= {"quiet", "workers", "scheduler", "finished", "plan"}
UNUSABLE = "There is no number to be used so far"  # where one would mislead
COMMANDS: dict[str, Callable[..., None]] = {}  # filled by the command line, by name
SO_FAR: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {}  # what there is of a run; those of other files
Run = Annotated[Path, typer.Argument(help="The folder of a run, made with --dir.", metavar="FOLDER")]
Anywhere = Annotated[
    str,
    typer.Argument(help="The folder of a run, made with --dir; also s3://BUCKET/RUN and the like.", metavar="FOLDER"),
]


def check_plan(plan: bool, folder: Path | None) -> None:
    if plan and folder is None:
        raise CrossfadeError("--plan writes down a run in a folder: give --dir FOLDER as well")


def remember(folder: Path, command: str, given: Mapping[str, Any]) -> None:
    """What the folder is a run of, so that it can be gone on with by its name alone."""
    from crossfade.runs.chunks import write_whole
    from crossfade.runs.plan import PLAN

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrossfadeError(f"{folder} cannot be made ({error.strerror}): choose another --dir") from None
    # by their full names: the run may be gone on with from elsewhere
    arguments = {name: str(value.absolute()) if isinstance(value, Path) else value for name, value in given.items()}
    del arguments["directory"]
    arguments |= {"plan": False} if "plan" in given else {}
    if "what" in given:
        arguments["what"] = list(map(written_out, given["what"]))
    said = {"command": command, "arguments": arguments}
    if (folder / COMMAND).is_file() and (folder / PLAN).is_file():
        before = json.loads((folder / COMMAND).read_text(encoding="utf-8"))
        if _asks(before) != _asks(said) and given.get("plan"):
            raise CrossfadeError(f"{folder} holds another run, {_in_words(before)}: choose another folder")
        if before == said or _asks(before) != _asks(said):  # nothing new, or another run, which its plan will refuse
            return
    write_whole(folder / COMMAND, json.dumps(said, indent=1).encode())


def _asks(said: dict[str, Any]) -> dict[str, Any]:
    """What a command asks for, without what may change when it goes on."""
    return {**said, "arguments": {name: own for name, own in said["arguments"].items() if name not in MAY_CHANGE}}


def _in_words(said: dict[str, Any]) -> str:
    return " ".join(map(str, ("crossfade", said["command"], *said["arguments"].get("what", ()))))


def planned(folder: Path, as_json: bool) -> None:
    """What to do next with a run that is only written down."""
    if as_json:
        print_json("plan", folder=str(folder))
    else:
        console().print(
            f"The run is written down in {folder}. Sample it, from as many jobs as you like, with: "
            f"crossfade work {folder}"
        )


def _remembered(folder: Path) -> tuple[str, dict[str, Any]]:
    path = folder / COMMAND
    if not path.is_file():
        raise CrossfadeError(f"{folder} holds no run of the command line: make one with --dir {folder}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        command, given = str(found["command"]), {**found["arguments"], "directory": folder}
    except (ValueError, KeyError, TypeError):
        raise CrossfadeError(f"{path} cannot be read: put back the one that was written when the run began") from None
    options = signature(COMMANDS[command]).parameters if command in COMMANDS else {}
    needed = {name for name, own in options.items() if own.default is own.empty}
    if strange := sorted(needed - {*given}) + [name for name in given if name not in options]:
        what = f"the option {strange[0]!r}" if options else f"the command {command!r}"
        raise CrossfadeError(
            f"{path} was written by another version of crossfade: {what} is not the same in this one. Go on with the "
            "version that wrote it"
        )
    return command, {name: given.get(name, own.default) for name, own in options.items()}


def resume(
    folder: Run,
    budget: Annotated[str | None, typer.Option(help="At most '90 s', '5 min' or '20000 draws', from now on.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that was stopped, or show the answer of one that has ended."""
    _go_on(folder, {} if budget is None else {"budget": budget}, as_json, quiet)


def extend(
    folder: Run,
    target_se: Annotated[float, typer.Option(help="The standard error to stop at.")],
    budget: Annotated[str | None, typer.Option(help="At most '90 s', '5 min' or '20000 draws', from now on.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run until its error is smaller."""
    _go_on(folder, {"target_se": target_se} | ({} if budget is None else {"budget": budget}), as_json, quiet)


def _go_on(folder: Path, changed: dict[str, Any], as_json: bool, quiet: bool) -> None:
    command, given = _remembered(folder)
    for name in changed:
        if name not in given:
            raise CrossfadeError(f"--{name.replace('_', '-')} means nothing to crossfade {command}: leave it out")
    changed |= {"as_json": as_json, "quiet": quiet or given.get("quiet", False)}
    paths = {name: Path(given[name]) for name in PATHS if given.get(name)}
    COMMANDS[command](**{**given, **paths, **changed})


def status(where: Anywhere, as_json: Json = False) -> None:
    """What a run has, without sampling anything: chunks, the estimate and its error so far."""
    from crossfade.runs.remote import fetched

    with fetched(where) as folder:
        found = _looked_at(folder)
    if as_json:
        print_json("status", folder=where, **found)
        return
    out = console()
    out.print(
        f"{found['chunks']} chunks, {found['bytes'] / 2**20:.1f} MB"
        + (f", {found['damaged']} damaged ones set aside" if found["damaged"] else "")
    )
    if "missing" in found:
        out.print(found["missing"][0].upper() + found["missing"][1:] + ".")
        return
    out.print(found["said"])
    if "error" not in found:
        return
    factor = (found["error"] / found["target_se"]) ** 2
    if factor > 1:
        out.print(f"Asked: {found['target_se']:g}. That takes about {factor:.1f} times the draws that there are.")
    out.print(f"Verdict so far: {found['verdict']}")


def _looked_at(folder: Path) -> dict[str, Any]:
    """What there is in a folder, and the answer so far."""
    from crossfade.runs.chunks import DAMAGED, ENDING
    from crossfade.runs.plan import looking
    from crossfade.sampling.clock import OutOfTime

    command, given = _remembered(folder)
    chunks = sorted(folder.rglob(f"*{ENDING}"))
    found: dict[str, Any] = {
        "command": command,
        "chunks": len(chunks),
        "bytes": sum(path.stat().st_size for path in chunks),
        "damaged": len(list(folder.rglob(f"*{DAMAGED}"))),
        "target_se": given.get("target_se") or 0.05,
    }
    try:
        with looking():
            return found | _so_far(command, {**given, "budget": None})
    except CrossfadeError as error:
        return found | {"missing": str(error)}
    except OutOfTime as stop:
        return found | {"missing": f"there is no answer yet, because {stop}"}


def _so_far(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if command in SO_FAR:
        return SO_FAR[command](given)
    if given.get("by"):
        from crossfade.app.by import so_far as rows_so_far

        return rows_so_far(given)
    if command == "rank":
        ranking = ranked(given, progress=False)
        error = float(ranking.table["error"].max())
        best = UNUSABLE if ranking.verdict == DO_NOT_USE else f"Best so far: {ranking.names[0]}"
        said = f"{best}. Worst error of a log evidence: {error:.2g}"
        names = list(ranking.names)
        return {
            "said": said,
            "error": error,
            "verdict": ranking.verdict,
            "models": names,
            "missing models": ranking.missing,
        }
    m1, m2, _ = models_of(given)
    result = compared(m1, m2, given, progress=False)
    own: Estimate = result.raw_estimate
    found = {"error": own.error, "verdict": result.verdict}
    if result.verdict == DO_NOT_USE:
        return found | {"said": f"{UNUSABLE}.", "value": None, "nulls": {"value": NO_ANSWER}}
    return found | {"said": f"log Bayes factor so far: {with_error(own)}", "value": own.value}


def work(
    folder: Run,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but what is left.")] = False,
) -> None:
    """Sample what nobody else samples, in a folder that several machines share; then: crossfade resume FOLDER."""
    from crossfade.methods.progress import chosen
    from crossfade.runs.leases import Leases, WorkDone, working

    command, given = _remembered(folder)
    say = chosen(not (quiet or as_json))
    try:
        with working(Leases(folder, say)):
            _so_far(command, given)
    except WorkDone as done:
        say("")
        if as_json:
            print_json("work", folder=str(folder), done=str(done))
            return
        console().print(f"{done}. The answer so far: crossfade status {folder}; the answer: crossfade resume {folder}")


def gather(
    into: Anywhere,
    others: Annotated[list[str], typer.Argument(help="Folders of the same run, from other machines.")],
    as_json: Json = False,
) -> None:
    """Join folders of one run that were made on several machines."""
    from crossfade.runs.chunks import write_whole
    from crossfade.runs.plan import PLAN, gathered
    from crossfade.runs.remote import fetched, is_remote, send

    out, n, left_out = console(), 0, list[str]()
    with fetched(into) as folder:
        for where in others:
            with fetched(where) as other:
                plans = sorted(other.rglob(PLAN))  # an experiment of the paper is several runs
                if not plans:
                    raise CrossfadeError(f"{where} holds no run: it has no {PLAN}")
                for plan in plans:
                    own = folder / plan.parent.relative_to(other)
                    n += gathered(own, [plan.parent], left_out.append if as_json else out.print)
                if not (folder / COMMAND).exists() and (other / COMMAND).is_file():
                    write_whole(folder / COMMAND, (other / COMMAND).read_bytes())
        if is_remote(into):
            send(folder, into)
    if as_json:
        print_json("gathered", folder=into, added=n, left_out=left_out)
        return
    out.print(f"{n} chunks added. Go on with: crossfade resume {into}")
