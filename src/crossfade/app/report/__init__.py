"""One HTML page of a result, a ranking or a table: what the terminal says, pictures, how it was done, whom to cite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfade.app import plots
from crossfade.app.by import of_many
from crossfade.app.page import STRONG, Row, Section, of_sensitivity, page
from crossfade.app.rankings import chance
from crossfade.app.rankings import of_ranking as page_of_ranking
from crossfade.app.report import methods
from crossfade.app.report.details import diagnostics, of_settings, priors, versions
from crossfade.app.report.html import data, document, folded, picture, section, text
from crossfade.app.report.methods import Told, cite
from crossfade.app.report.slider import positions, slider
from crossfade.app.report.svg import inline
from crossfade.app.store import check_folder, write_text
from crossfade.types import DO_NOT_USE, CrossfadeError, Result

if TYPE_CHECKING:
    from crossfade.many import Many
    from crossfade.methods.sensitivity import Sensitivity
    from crossfade.ranking.record import Ranking

MODELS_SHOWN = 100  # of a ranking; all are in its table
ABOUT_THE_VERDICT = (
    "The verdict is about the computation: whether the number is what the models, their priors and the data make it. "
    "Whether models and priors make sense is for people to say."
)
CAPTIONS = {
    "ratios": "Log ratios of the two densities at draws of each model. The two histograms cross where the log ratio "
    "is the log Bayes factor.",
    "integrand": "The mean log ratio along the path with bands of two standard errors. Its mean over tau is the log "
    "Bayes factor.",
    "overlap": "How far the draws of neighbouring rungs overlap, in each half of the chains or on each path.",
    "convergence": "The estimate from the first draws of each half of the chains, and the final 95 % interval.",
    "opinions": "The same number by other estimators from the same draws, with 95 % intervals.",
    "differs": "Posterior draws (filled) and prior density (dashed) of the parameters that the models do not share.",
    "probabilities": "Probabilities of the models with 95 % Monte-Carlo intervals.",
    "network": "The pairs of models from which the ranking is read. Numbers are ranks.",
    "sensitivity": "The log Bayes factor by the scale of a prior, with its 95 % band.",
    "many": "The log Bayes factor of every data set with its 95 % interval.",
}


def report_result(result: Result, path: str | Path, sensitivity: Sensitivity | None = None) -> None:
    """The page of a result, and of the answer by a prior's scale where that is given."""
    path, about = _checked(path), result.about
    sections = page(result)
    usable = result.verdict != DO_NOT_USE
    if sensitivity is not None and not usable:
        raise CrossfadeError('the verdict is "do not use", so there is no curve to report: leave sensitivity= out')
    title = f"{about.get('M1', 'M1')} against {about.get('M2', 'M2')}"
    told = methods.of_result(result)
    if sensitivity is not None:
        more = methods.of_sensitivity()
        told = Told((*told.sentences, *more.sentences), (*told.sources, *more.sources))
    parts = [_header("Bayes factor of two models", title, _strong(sections))]
    parts += [section(own) for own in sorted(sections, key=lambda own: not own.verdict)]  # the verdict first
    parts.append(section(Section(note=ABOUT_THE_VERDICT)))
    parts.append(section(priors(result)))
    if usable:
        shown, missing = _pictures(plots.OF_RESULT, result)
        parts += [shown, _sensitivity(sensitivity) if sensitivity is not None else ""]
        parts.append(folded("Diagnostics", *(section(own) for own in (*diagnostics(result), missing))))
    parts += _end(told, about)
    write_text(path, document(f"{title}: Bayes factor", *parts))


def report_ranking(ranking: Ranking, path: str | Path) -> None:
    """The page of a ranking."""
    path, usable = _checked(path), ranking.verdict != DO_NOT_USE
    title = f"{len(ranking.names):,} models of {ranking.about.get('data', 'one data set')}"
    best = []
    if usable:
        first = ranking.names[0]
        best = [("most probable", first), ("its probability", chance(ranking.probabilities[first]))]
    sections = page_of_ranking(ranking, MODELS_SHOWN)
    parts = [_header("Ranking of models", title, best)]
    parts += [section(own) for own in sorted(sections, key=lambda own: not own.verdict)]
    if usable:
        shown, missing = _pictures(plots.OF_RANKING, ranking)
        parts += [shown, folded("Diagnostics", section(missing))]
    parts += _end(methods.of_ranking(ranking), ranking.about)
    write_text(path, document(f"{title}: ranking", *parts))


def report_many(many: Many, path: str | Path) -> None:
    """The page of a table: every data set has its row."""
    path = _checked(path)
    title = f"{len(many.rows):,} data sets, one pair of models"
    counts = [(verdict, f"{n:,}") for verdict, n in many.verdicts.items()]
    parts = [_header("Bayes factors of many data sets", title, counts)]
    if any(row["log_bayes_factor"] is not None for row in many.rows):
        parts.append(_pictures({"many": plots.CURVES["many"]}, many)[0])
    parts += [section(own) for own in of_many(many, "data set", None, shown=None)]
    parts.append(folded("Versions", section(versions())))
    write_text(path, document(title, *parts))


def _checked(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise CrossfadeError(f"{path}: a report is a page: give a name that ends in .html")
    check_folder(path)
    return path


def _header(kind: str, title: str, headline: list[tuple[str, str]]) -> str:
    rows = "".join(f"<div><dt>{text(name)}</dt><dd>{text(said)}</dd></div>" for name, said in headline)
    numbers = f'<dl class="headline">{rows}</dl>' if rows else ""
    return f'<header><p class="kind">crossfade report · {text(kind)}</p><h1>{text(title)}</h1>{numbers}</header>'


def _strong(sections: tuple[Section, ...]) -> list[tuple[str, str]]:
    """What stands out on the page: name and number."""
    rows = (row for own in sections if len(own.columns) == 2 for row in own.rows if row.style == STRONG)
    return [(row.cells[0], row.cells[1]) for row in rows]


def _pictures(kinds: plots.Kinds, what: Any) -> tuple[str, Section]:
    """Every kind that can be drawn of this, and why the others cannot."""
    found, missing = [], []
    plots.check_matplotlib()
    for kind in kinds:
        try:
            figure = plots.plotted(kinds, what, kind)
        except CrossfadeError as error:
            missing.append(Row((kind, str(error))))
            continue
        found.append(picture(inline(figure, f"{kind}-", CAPTIONS[kind]), CAPTIONS[kind]))
    shown = f'<section><h2>Pictures</h2><div class="pictures">{"".join(found)}</div></section>' if found else ""
    return shown, Section("Pictures that this run has no draws for", rows=tuple(missing))


def _sensitivity(curve: Sensitivity) -> str:
    drawn = picture(inline(plots.of_curve(curve, "sensitivity"), "sensitivity-", CAPTIONS["sensitivity"]), "")
    table, *rest = of_sensitivity(curve)
    parts = [slider(curve), drawn, data("positions", positions(curve)), *(section(own) for own in rest)]
    inside = "".join(parts) + folded("Every scale", section(table))
    return f'<section id="sensitivity"><h2>{text(table.title)}</h2>{inside}</section>'


def _end(told: Told, about: dict[str, Any]) -> list[str]:
    said = "".join(f"<p>{text(sentence)}</p>" for sentence in told.sentences)
    sources = "\n".join(map(text, cite(told).splitlines()))
    return [
        folded("Settings, data and versions", *(section(own) for own in (*of_settings(about), versions()))),
        f"<section><h2>How it was computed</h2>{said}</section>",
        f"<section><h2>To cite</h2><pre>{sources}</pre></section>",
    ]
