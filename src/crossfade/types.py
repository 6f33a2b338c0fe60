"""The nouns, all of them but `Path` and `Model` (which need JAX and live in `paths` and `density`).

This module imports neither JAX nor anything of ours, so that a stored run can be re-analysed and the
command line can start without waiting for a compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

# Shapes in types, in jaxtyping's words: for people and type checkers, who make the same of its own.
from typing import Annotated as Bool  # noqa: F401 - for all modules
from typing import Annotated as Float
from typing import Annotated as Int  # noqa: F401
from typing import Any, NamedTuple

import numpy as np

Array = Any  # a NumPy or JAX array: both sides of the waist use these nouns
Theta = dict[str, Array]  # parameters by name; equal names are what two models share


class CrossfadeError(ValueError):
    """Bad input or a run that cannot be trusted; the message says what to do next."""


class NoAnswer(CrossfadeError):
    """The run is complete but its estimator refuses the traces; `legs` holds them for another one."""

    def __init__(self, message: str, legs: tuple[Leg, ...], about: dict[str, Any]):
        super().__init__(message)
        self.legs = legs
        self.about = about


class Energy(NamedTuple):
    """Log densities (unnormalised) of the two ends of a path at one point: log q_0 and log q_1."""

    start: Array
    end: Array

    @property
    def ratio(self) -> Array:
        """log q_1 - log q_0 (the paper's Phi), whose mean is the slope of log Z."""
        return self.end - self.start

    def at(self, tau: Array) -> Array:
        """log q_tau = (1 - tau) log q_0 + tau log q_1, exact at both ends even where the other end is -inf."""
        import jax.numpy as jnp

        between = (1 - tau) * self.start + tau * self.end
        return jnp.where(tau == 0, self.start, jnp.where(tau == 1, self.end, between))


class State(NamedTuple):
    """Where a chain is. Valid at every tau, so moving tau costs nothing; the same for all kernels."""

    theta: Theta
    energy: Energy


class Trace(NamedTuple):
    """The waist: all that an estimator may know about a run along a path."""

    tau: Float[np.ndarray, " rung"]  # from 0 to 1, non-decreasing
    log_ratio: Float[np.ndarray, "chain rung draw"]
    acceptance: Float[np.ndarray, "chain rung"]  # mean over the draws of the rung
    equilibrium: bool  # True: K rungs x draws after burn-in; False: N x 1, the state lags behind tau
    extra: dict[str, np.ndarray] = {}  # "theta" and "score" [chain, rung, draw, dimension], if recorded

    @property
    def n_chains(self) -> int:
        return self.log_ratio.shape[0]

    @property
    def n_draws(self) -> int:
        return self.log_ratio.shape[2]

    def take(self, chains: Any = slice(None), rungs: Any = slice(None), draws: Any = slice(None)) -> Trace:
        """The part of the trace with these chains, these rungs and these draws of every rung."""
        taken = {name: value[chains][:, rungs][:, :, draws] for name, value in self.extra.items()}
        log_ratio = self.log_ratio[chains][:, rungs][:, :, draws]
        return Trace(self.tau[rungs], log_ratio, self.acceptance[chains][:, rungs], self.equilibrium, taken)

    def left_out(self) -> Iterator[Trace]:
        """Without each chain in turn."""
        return (self.take(chains=np.arange(self.n_chains) != i) for i in range(self.n_chains))


class Estimate(NamedTuple):
    """A number with its standard error and the degrees of freedom behind that error."""

    value: float
    error: float
    dof: float
    name: str = ""

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end of the central interval from Student's t with `dof` degrees of freedom."""
        from scipy.special import stdtrit

        half = float(stdtrit(self.dof, 0.5 + level / 2)) * self.error
        return self.value - half, self.value + half

    def __neg__(self) -> Estimate:
        return self._replace(value=-self.value)


class Leg(NamedTuple):
    """One path that was run both ways. `reverse` ran on the reversed path: it estimates minus the same."""

    name: str
    sign: float  # the factor with which the leg enters the log Bayes factor: +1, -1, or 1/2 for one of two halves
    forward: Trace
    reverse: Trace | None


class Sharing(NamedTuple):
    """Which parameters two models share, and which of those have different priors (and are tempered)."""

    shared: tuple[str, ...]
    only_1: tuple[str, ...]
    only_2: tuple[str, ...]
    tempered: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()  # a sentence for each name of both models that is not shared, saying why


# The words of a verdict, from best to worst.
TRUSTWORTHY, WEAK, DO_NOT_USE = VERDICTS = ("trustworthy", "weak", "do not use")

Posterior = dict[str, np.ndarray]  # draws [chain, draw, ...] by parameter


class Result(NamedTuple):
    """What `compare` returns; every number is of M2 over M1, always."""

    raw_estimate: Estimate  # the number whatever the verdict: not to be used where that says so
    verdict: str  # "trustworthy", "weak" or "do not use"
    reasons: tuple[str, ...]  # for the verdict, a sentence each
    opinions: dict[str, Estimate]  # the same number by every other estimator the traces allow
    differences: dict[str, Estimate]  # each opinion minus the answer, on the same chains
    checks: dict[str, Estimate]  # "hysteresis" is 0 and "slope" is 1, but for chance, in a sound run
    legs: tuple[Leg, ...]
    sharing: Sharing
    about: dict[str, Any]  # method, n_chains, seed, log_prior_odds, seconds, priors, ...
    draws: tuple[Posterior, Posterior] = ({}, {})  # of both posteriors, where the method has them

    @property
    def log_bayes_factor(self) -> Estimate:
        """The answer; not a number where the verdict is "do not use"."""
        if self.verdict == DO_NOT_USE:
            return Estimate(np.nan, np.inf, self.raw_estimate.dof, self.raw_estimate.name)
        return self.raw_estimate

    @property
    def hysteresis(self) -> Estimate | None:
        """The run from M1 to M2 minus that back: 0 within its error if the run was long enough."""
        return self.checks.get("hysteresis")

    @property
    def log_posterior_odds(self) -> float:
        return self.log_bayes_factor.value + float(self.about.get("log_prior_odds", 0.0))

    @property
    def probability(self) -> float:
        """p(M2 | data) when M1 and M2 are the only candidates."""
        return float(1 / (1 + np.exp(-self.log_posterior_odds)))

    @property
    def sentence(self) -> str:
        """The answer in a sentence to paste."""
        return str(import_module("crossfade.app.words").sentence(self))

    @property
    def posteriors(self) -> Any:
        """Draws of both posteriors as an xarray DataTree: `posteriors["M1"]` is what ArviZ takes."""
        return import_module("crossfade.app.tree").posteriors(self)

    def save(self, path: Any) -> None:
        """Write the result to a netCDF file, which `crossfade.load` reads."""
        import_module("crossfade.app.store").save(self, path)

    def plot(self, kind: str, path: Any = None) -> Any:
        """A picture, as matplotlib's Figure, also written to the path if there is one.

        "ratios", "integrand", "overlap", "convergence", "opinions" or "differs".
        """
        return import_module("crossfade.app.plots").of_result(self, kind, path)

    def report(self, path: Any, *, sensitivity: Any = None) -> None:
        """Write one HTML page with all of it, which needs nothing else; with a slider along a prior's scale, if given.

        `sensitivity` is what `crossfade.prior_sensitivity` returns.
        """
        import_module("crossfade.app.report").report_result(self, path, sensitivity)

    def cite(self) -> str:
        """BibTeX of crossfade and of the methods that this answer used."""
        return import_module("crossfade.app.report.methods").cite_result(self)

    def __repr__(self) -> str:
        """One line; `print` shows the page."""
        return f"Result(log_bayes_factor={self.log_bayes_factor!r}, verdict={self.verdict!r})"

    def __str__(self) -> str:
        return import_module("crossfade.app.terminal").text(self)

    def _repr_html_(self) -> str:
        return import_module("crossfade.app.html").fragment(self)
