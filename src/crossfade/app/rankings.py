"""Rankings: what their page says, and files that keep them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from crossfade.app.html import pieces
from crossfade.app.page import STRONG, Row, Section
from crossfade.app.store import write_text
from crossfade.app.terminal import plain
from crossfade.app.words import with_error
from crossfade.ranking.record import Closure, Moments, Ranking
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate

SHOWN = 15  # models on the page; all are in the table
FORMAT = "crossfade ranking 1"


def of_ranking(ranking: Ranking, shown: int = SHOWN) -> tuple[Section, ...]:
    """The verdict, the best models, the terms, and what is missing."""
    about = ranking.about
    said = [(name, str(about[name])) for name in ("data", "scale", "note", "prior", "search") if name in about]
    parts = [Section("Models", rows=tuple(Row(pair) for pair in said))] if said else []
    lines = ranking.reasons or (about.get("grounds") or "Chains of all models agree, and so do ways round.",)
    parts.append(Section(_headline(ranking), lines=tuple(lines), verdict=ranking.verdict))
    if ranking.verdict != DO_NOT_USE:
        parts += [_models(ranking, shown), *_terms(ranking)]
    if ranking.closure:
        worst = max(ranking.closure, key=lambda own: abs(own.residual.value) / max(own.residual.error, 1e-300))
        said_of = f"{len(ranking.closure)} other pairs were read; the worst differs by {with_error(worst.residual)} "
        parts.append(
            Section("Ways round", lines=(f"{said_of}from the way round ({worst.first} beside {worst.second}).",))
        )
    if ranking.missing:
        why = tuple(f"{name}: {reason}" for name, reason in ranking.missing.items())
        parts.append(Section("Without an answer", lines=why, note="These models are not in the ranking."))
    return tuple(parts)


def _headline(ranking: Ranking) -> str:
    if ranking.verdict == DO_NOT_USE:
        return "DO NOT USE"
    first = next(iter(ranking.probabilities.values())).value
    return f"{ranking.verdict.upper()}: the best of {len(ranking.names):,} models has probability {first:.3f}"


def _models(ranking: Ranking, shown: int) -> Section:
    table, probabilities = ranking.table, ranking.probabilities
    rows = []
    for i, name in enumerate(ranking.names[:shown]):
        own = Estimate(table["log_bayes_factor"].iloc[i], table["error"].iloc[i], 1.0)
        against = table["log_bayes_factor_over_rest"].iloc[i]
        cells = (f"{i + 1}", _short(own) if i else "0", chance(probabilities[name]), f"{against:.2f}", name)
        rows.append(Row(cells, STRONG if i == 0 else ""))
    note = ["log BF: log Bayes factor over the first model; over the rest: of a model over all others together"]
    if (left := len(ranking.names) - shown) > 0:
        rest = sum(own.value for own in list(probabilities.values())[shown:])
        note.append(f"{left:,} more models have a probability of {rest:.2g}")
    if (aside := 1 - sum(own.value for own in probabilities.values())) > 1e-4:
        note.append(f"models that were looked at and are not listed have {aside:.1g} together")
    if (sure := ranking.chance_of_winner) < 0.9995:
        note.append(f"chance that the first is the most probable, for all Monte-Carlo noise: {sure:.3f}")
    columns = ("", "log BF", "probability", "over the rest", "model")
    return Section("Ranking", columns, (1, 2, 3), tuple(rows), note="; ".join(note))


def _short(own: Estimate) -> str:
    """Three digits behind the point, or as many as the error has; an exact number has none."""
    if own.error < 1e-6:
        return f"{own.value:.3f}"
    return f"{own.value:.3f} ± {own.error:.3f}" if own.error >= 5e-4 else with_error(own)


def chance(own: Estimate) -> str:
    return f"{own.value:.1e}" if own.value < 1e-3 else _short(own)


def _terms(ranking: Ranking) -> list[Section]:
    if not ranking.terms or len(set(ranking.terms)) < 3:
        return []
    rows = []
    for term, own in ranking.inclusion.iterrows():
        p = Estimate(own["probability"], own["error"], 1.0)
        matched = "" if np.isnan(own["matched_log_bayes_factor"]) else f"{own['matched_log_bayes_factor']:.2f}"
        rows.append(Row((str(term), f"{own['prior']:.3f}", chance(p), f"{own['log_bayes_factor']:.2f}", matched)))
    columns = ("term", "prior", "probability", "log inclusion BF", "matched")
    note = "Matched: models with the term against the same models without it."
    return [Section("Terms", columns, (1, 2, 3, 4), tuple(rows), note=note)]


def text(ranking: Ranking) -> str:
    return plain(*of_ranking(ranking))


def fragment(ranking: Ranking) -> str:
    return pieces(of_ranking(ranking))


def as_json(ranking: Ranking) -> dict[str, Any]:
    """Everything but the draws."""
    return {
        "format": FORMAT,
        "models": list(ranking.names),
        "log_evidence": ranking.log_evidence.tolist(),
        "left_out": ranking.left_out.tolist(),
        "n_strata": ranking.n_strata,
        "prior": ranking.prior.tolist(),
        "probabilities": {name: [own.value, own.error] for name, own in ranking.probabilities.items()},
        "verdict": ranking.verdict,
        "reasons": list(ranking.reasons),
        "missing": ranking.missing,
        "terms": [sorted(own) for own in ranking.terms],
        "moments": [
            {name: [own.mean.tolist(), own.variance.tolist()] for name, own in moments.items()}
            for moments in ranking.moments
        ],
        "closure": [[own.first, own.second, *own.residual[:3]] for own in ranking.closure],
        "about": ranking.about,
    }


def save(ranking: Ranking, path: str | Path) -> None:
    """As JSON; it appears complete or not at all."""
    write_text(Path(path), json.dumps(as_json(ranking)))


def load_ranking(path: str | Path) -> Ranking:
    """The `Ranking` in a JSON file that `Ranking.save` or `crossfade rank --out` wrote."""
    path = Path(path)
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CrossfadeError(f"there is no file {path}") from None
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise CrossfadeError(f"{path} is not a ranking: it is no JSON") from None
    if not isinstance(kept, dict) or kept.get("format") != FORMAT:
        raise CrossfadeError(f"{path} is not a ranking of this version of crossfade")
    return Ranking(
        tuple(kept["models"]),
        np.array(kept["log_evidence"]),
        np.array(kept["left_out"]),
        np.array(kept["prior"]),
        kept["verdict"],
        tuple(kept["reasons"]),
        kept["missing"],
        tuple(map(frozenset, kept["terms"])),
        tuple({name: Moments(*map(np.asarray, own)) for name, own in moments.items()} for moments in kept["moments"]),
        tuple(Closure(first, second, Estimate(*numbers)) for first, second, *numbers in kept["closure"]),
        kept["n_strata"],
        kept["about"],
    )
