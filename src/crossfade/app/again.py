"""A run that is done, read with another estimator."""

from __future__ import annotations

from crossfade.app.page import telling
from crossfade.types import CrossfadeError, Result


def read_with(result: Result, estimator: str) -> Result:
    """The same run with the number of this estimator as its answer.

    Of the default method the stored opinion is taken with its stored error, as good as the method made that: the
    traces alone do not know that the links were fitted, so an error computed anew from them is too small.
    """
    answer = result.raw_estimate
    if result.about.get("method") != "auto":
        return _computed(result, estimator)
    if estimator == answer.name:
        return result
    straight = all(len(set(leg.forward.tau)) == 2 for leg in result.legs)
    if straight and {estimator, answer.name} == {"bar", "mbar"} and estimator not in result.opinions:
        return result._replace(raw_estimate=answer._replace(name=estimator))  # between two rungs they are the same
    there = [name for name, opinion in result.opinions.items() if telling(opinion, answer)]
    if estimator not in there:
        names = ", ".join([answer.name, *there])
        raise CrossfadeError(f"this run has no answer by {estimator!r}: choose one of {names}")
    others = {name: opinion for name, opinion in result.opinions.items() if name != estimator}
    # Of the other opinions the difference from the new answer, on the same chains, is not stored.
    known = {answer.name: -result.differences[estimator]} if estimator in result.differences else {}
    return result._replace(
        raw_estimate=result.opinions[estimator], opinions={answer.name: answer, **others}, differences=known
    )


def _computed(result: Result, estimator: str) -> Result:
    """Of the other methods the traces are all there is to know, so the run is judged anew."""
    from crossfade.analysis.judge import judge
    from crossfade.analysis.judge_table import of_table
    from crossfade.analysis.summary import summarise

    found = summarise(result.legs, estimator)
    word, reasons = judge(of_table(result.legs, found))
    rest = {field: value for field, value in found._asdict().items() if field != "headline"}
    return result._replace(raw_estimate=found.headline, verdict=word, reasons=reasons, **rest)
