"""Priors as densities, from the words in which results state them: `Normal(0, 10)`, `Normal(0, variance / 6)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

VARIANCE = "variance"  # of a conjugate regression, whose coefficients have priors in units of it
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
# NumPyro's words, and those that the bridge to PyMC writes.
FAMILIES: dict[str, Callable[..., Any]] = {
    "Normal": lambda s, loc, scale: s.norm(loc, scale),
    "StudentT": lambda s, df, loc, scale: s.t(df, loc, scale),
    "Cauchy": lambda s, loc, scale: s.cauchy(loc, scale),
    "Laplace": lambda s, loc, scale: s.laplace(loc, scale),
    "LogNormal": lambda s, loc, scale: s.lognorm(scale, scale=np.exp(loc)),
    "HalfNormal": lambda s, *own: s.halfnorm(0, own[-1]) if own[:-1] in ((), (0.0,)) else None,
    "HalfCauchy": lambda s, scale: s.halfcauchy(0, scale),
    "Exponential": lambda s, rate: s.expon(scale=1 / rate),
    "Gamma": lambda s, shape, rate: s.gamma(shape, scale=1 / rate),
    "InverseGamma": lambda s, shape, rate: s.invgamma(shape, scale=rate),
    "Beta": lambda s, a, b: s.beta(a, b),
    "Uniform": lambda s, low, high: s.uniform(low, high - low),
}


def distribution(words: str, priors: Mapping[str, str]) -> Any:
    """A frozen distribution of SciPy's, or None where the words do not fix one: the picture then shows the words."""
    from scipy import stats

    words = re.sub(r" of shape \(.*\)$", "", words.strip())
    if scaled := re.fullmatch(rf"Normal\(({NUMBER}), {VARIANCE} / ({NUMBER})\)", words):
        noise = re.fullmatch(rf"InverseGamma\(({NUMBER}), ({NUMBER})\)", priors.get(VARIANCE, ""))
        if noise is None:
            return None
        # theta | v ~ N(m, v/k) and 1/v ~ Gamma(a, b): theta is Student's t with 2a degrees of freedom.
        (mean, precision), (shape, rate) = (map(float, own.groups()) for own in (scaled, noise))
        return stats.t(2 * shape, mean, np.sqrt(rate / shape / precision))
    plain = re.fullmatch(rf"(\w+)\(({NUMBER}(?:, {NUMBER})*)\)", words)
    if plain is None or plain[1] not in FAMILIES:
        return None
    try:
        return FAMILIES[plain[1]](stats, *map(float, plain[2].split(", ")))
    except TypeError:  # another number of arguments: not the distribution of this name that is known here
        return None
