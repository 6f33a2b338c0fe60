"""Are the Bayes factors of two models right on average, and what would a design of this size find?

Data are made up from a model chosen by its prior probability, with parameters of its prior, and compared. If model and
computation are right, posterior probabilities mean what they say: of all data sets with p(M2 | data) near 0.8, eight in
ten were made by M2 (simulation-based calibration for Bayes factors: Schad, Nicenboim, Buerkner, Betancourt and
Vasishth 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from crossfade.many import seed_of, table_of
from crossfade.methods.progress import Say, chosen
from crossfade.runs.made_from import made_from
from crossfade.runs.plan import in_numbers
from crossfade.types import CrossfadeError, Estimate, Float, Int, Result

if TYPE_CHECKING:
    import pandas

EDGES = np.array([0.0, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 1.0])  # of the bins of p(M2 | data)
STRENGTHS = (3, 10, 30)  # Bayes factors that a design is to reach
CHANCE = 0.002  # of a sound pair to be called not calibrated
FEWEST = 20
N_CHANCE = 20_000
WIDEST = 50.0  # log odds beyond which nothing is looked for


class Calibration(NamedTuple):
    """Data sets that one of the models made, and what the other said."""

    made_by_2: Int[np.ndarray, " set"]  # 1 where M2 made the data, 0 where M1 did
    log_bayes_factor: Float[np.ndarray, " set"]
    prior: float  # p(M2) before the data
    rows: tuple[dict[str, Any], ...]  # of all data sets, those without an answer too

    @property
    def probability(self) -> np.ndarray:
        """p(M2 | data) of each data set."""
        return expit(self.log_odds)

    @property
    def log_odds(self) -> np.ndarray:
        return self.log_bayes_factor + np.log(self.prior / (1 - self.prior))

    @property
    def n_without_answer(self) -> int:
        return len(self.rows) - len(self.made_by_2)

    @property
    def average(self) -> Estimate:
        """Mean of p(M2 | data) minus the share that M2 made: 0, but for chance."""
        gap = self.probability - self.made_by_2
        variance = (self.probability * (1 - self.probability)).sum()  # of what M2 made, if probabilities are right
        return Estimate(float(gap.mean()), float(np.sqrt(variance) / len(gap)), np.inf, "average")

    @property
    def offset(self) -> Estimate:
        """By how much the log Bayes factors are too large: 0, but for chance; a dropped constant shows here."""

        def excess(shift: float) -> float:
            return float((expit(self.log_odds - shift) - self.made_by_2).sum())

        if not excess(-WIDEST) > 0 > excess(WIDEST):
            return Estimate(np.nan, np.inf, np.inf, "offset")
        found = brentq(excess, -WIDEST, WIDEST)
        p = expit(self.log_odds - found)
        error = float((p * (1 - p)).sum() ** -0.5)
        return Estimate(float(found), error, np.inf, "offset") if error < WIDEST else Estimate(np.nan, np.inf, np.inf)

    @property
    def bins(self) -> pandas.DataFrame:
        """By range of p(M2 | data): how many data sets, their mean probability, and the share that M2 made."""
        import pandas

        which, rows = self._bin, []
        for i in np.unique(which):
            p, made = self.probability[which == i], self.made_by_2[which == i]
            sd = np.sqrt((p * (1 - p)).sum()) / len(p)
            rows.append((EDGES[i], EDGES[i + 1], len(p), p.mean(), made.mean(), sd))
        return pandas.DataFrame(rows, columns=["from", "to", "sets", "probability", "made_by_2", "sd"])

    @property
    def chance(self) -> float:
        """The probability of a disagreement at least as large, were probabilities right.

        Of two: on average, and in bins. The bins' share of what M2 made is far from normal near 0 and 1, so that chance
        itself is asked: data sets with the same probabilities, a model drawn anew for each.
        """
        p, which = self.probability, self._bin
        weight = np.zeros((len(p), which.max() + 1))
        weight[np.arange(len(p)), which] = 1.0
        spread = np.maximum((p * (1 - p)) @ weight, 1e-300)
        random = np.random.default_rng(0)
        made = np.vstack([self.made_by_2, random.uniform(size=(N_CHANCE, len(p))) < p])
        gaps = (made - p) @ weight
        whole, bins = np.abs(gaps.sum(axis=1)), (gaps**2 / spread).sum(axis=1)
        worst = min(np.mean(own >= own[0] * (1 - 1e-9)) for own in (whole, bins))
        return float(min(2 * worst, 1.0))

    @property
    def _bin(self) -> np.ndarray:
        return np.clip(np.searchsorted(EDGES, self.probability, side="right") - 1, 0, len(EDGES) - 2)

    @property
    def calibrated(self) -> bool:
        return self.chance > CHANCE

    @property
    def design(self) -> pandas.DataFrame:
        """How often data of this size give a Bayes factor of so much for the model that made them, or for the other."""
        import pandas

        rows = []
        for k, name in ((0, "M1"), (1, "M2")):
            own = self.log_bayes_factor[self.made_by_2 == k] * (2 * k - 1)
            for strength in STRENGTHS:
                right, wrong = ((sign * own > np.log(strength)).mean() if len(own) else np.nan for sign in (1, -1))
                rows.append((name, strength, right, wrong))
        return pandas.DataFrame(rows, columns=["made by", "Bayes factor", "for it", "against it"])

    def plot(self, path: str | Path | None = None) -> Any:
        """Share made by M2 against p(M2 | data), and the Bayes factors under each model; also written to the path."""
        return import_module("crossfade.app.plots").of_curve(self, "calibration", path)

    def __str__(self) -> str:
        return import_module("crossfade.app.terminal").plain(*import_module("crossfade.app.page").of_calibration(self))


Make = Callable[[Any], Any]  # a model of data


def calibrate(
    m1: Any,
    m2: Any,
    *,
    n_sets: int = 200,
    simulate: tuple[Callable[[int], Any], Callable[[int], Any]] | None = None,
    prior: float = 0.5,
    seed: int = 0,
    target_se: float = 0.1,
    out: str | Path | None = None,
    progress: bool | Say = True,
    **settings: Any,
) -> Calibration:
    """Compare both models on data that they made up themselves, and see whether the answers are right on average.

    NumPyro functions (with their arguments, as a tuple), pm.Models and formulas make up their own responses, and keep
    everything else. Others are given as functions of the data, with `simulate`: for each model a function from a seed
    to data. `n_sets` is 20 or more, `prior` is p(M2). `settings` are those of `compare`; `out` keeps finished rows, as
    in `compare_many`.
    """
    if not (isinstance(n_sets, int) and n_sets >= FEWEST):
        raise CrossfadeError(f"n_sets = {n_sets}: give at least {FEWEST}")
    if not 0 < prior < 1:
        raise CrossfadeError(f"prior = {prior}: give p(M2) before the data, between 0 and 1")
    draws, makes = _simulators(m1, m2, simulate)
    random = np.random.default_rng([seed, 11])
    made = (random.uniform(size=n_sets) < prior).astype(int)
    sets = [(f"{i:05d} M{made[i] + 1}", draws[made[i]](seed_of(seed, f"data {i}"))) for i in range(n_sets)]

    def one(data: Any, own: int) -> Result:
        from crossfade.api import compare

        return compare(*(make(data) for make in makes), seed=own, target_se=target_se, progress=False, **settings)

    plan = {"calibrate": n_sets, "seed": seed, "prior": prior, "target_se": target_se, **settings}
    if out is not None:  # models in numbers: on data of their own, at places that know their priors
        known = [draw(seed_of(seed, "plan")) for draw in draws]
        plan["models"] = made_from([in_numbers(make(known[0])) for make in makes], known)
    rows = table_of(sets, one, plan, out, None, seed, chosen(progress)).rows
    answered = np.array([row["log_bayes_factor"] is not None for row in rows])
    if answered.sum() < FEWEST:
        reason = next(row["reason"] for row in rows if row["log_bayes_factor"] is None)
        said = f"only {answered.sum()} of {n_sets} data sets gave an answer"
        raise CrossfadeError(f"{said}; the first of the others says: {reason}")
    values = np.array([row["log_bayes_factor"] for row in rows if row["log_bayes_factor"] is not None])
    return Calibration(made[answered], values, prior, rows)


def _simulators(m1: Any, m2: Any, simulate: Any) -> tuple[list[Callable[[int], Any]], list[Make]]:
    if simulate is not None:
        if not (callable(m1) and callable(m2) and len(simulate) == 2 and all(map(callable, simulate))):
            raise CrossfadeError(
                "with simulate= both models are functions of the data, and simulate is two functions of a seed"
            )
        return list(simulate), [m1, m2]
    from crossfade.bridges.simulate import Data, simulator

    first, second = simulator(m1, "M1"), simulator(m2, "M2")
    names = dict(zip(first.shapes, second.shapes, strict=False))
    if set(first.shapes) == set(second.shapes):
        names = {name: name for name in first.shapes}
    elif len(first.shapes) != 1 or len(second.shapes) != 1:
        raise CrossfadeError(
            f"M1 observes {', '.join(first.shapes)} and M2 observes {', '.join(second.shapes)}: give the same data the "
            "same names in both"
        )
    for a, b in names.items():
        if first.shapes[a] != second.shapes[b]:
            raise CrossfadeError(f"the responses {a!r} have shape {first.shapes[a]} in M1 and {second.shapes[b]} in M2")

    def drawn_by_2(key: int) -> Data:
        made = second.draw(key)
        return {a: made[b] for a, b in names.items()}

    def given_to_2(data: Data) -> Any:
        return second.given({b: data[a] for a, b in names.items()})

    return [first.draw, drawn_by_2], [first.given, given_to_2]
