"""Pairs of models on which a comparison can fail: curves, steps, labels, funnels, states and groups.

PAIRS[name]() is a pair (M1, M2) for crossfade.compare; benchmarks/hard_references.csv holds the log Bayes factors of
M2 over M1. Every function below, and in hard_pairs_latent.py, returns the two as (model, *arguments).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import hard_pairs_latent as latent
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.experimental.ode import odeint
from numpyro import distributions as dist

import crossfade

Call = tuple[Any, ...]  # a model and its arguments


# Predator and prey --------------------------------------------------------------------------------------------------


def _flow(state, _, alpha, beta, gamma, delta, crowding):
    prey, predator = state
    return jnp.stack(
        [prey * (alpha * (1 - crowding * prey) - beta * predator), predator * (delta * prey - gamma)],
    )


def _predator(times, counts, limited):
    alpha = numpyro.sample("alpha", dist.LogNormal(np.log(0.7), 0.5))
    beta = numpyro.sample("beta", dist.LogNormal(np.log(0.03), 0.5))
    gamma = numpyro.sample("gamma", dist.LogNormal(np.log(0.7), 0.5))
    delta = numpyro.sample("delta", dist.LogNormal(np.log(0.03), 0.5))
    start = numpyro.sample("start", dist.LogNormal(np.log(20.0), 0.7).expand([2]))
    sigma = numpyro.sample("sigma", dist.HalfNormal(0.5))
    crowding = 1 / numpyro.sample("capacity", dist.LogNormal(np.log(200.0), 1.0)) if limited else 0.0
    states = odeint(_flow, start, times, alpha, beta, gamma, delta, crowding, rtol=1e-6, atol=1e-6, mxstep=1000)
    numpyro.sample("counts", dist.LogNormal(jnp.log(jnp.maximum(states, 1e-10)), sigma), obs=counts)


def predator_data() -> tuple[np.ndarray, np.ndarray]:
    """Times and counts [20, 2] of prey and predator, from small steps of Euler's method."""
    random, n_steps = np.random.default_rng(101), 2000
    times, state, states = np.arange(20.0), np.array([33.0, 6.0]), []
    for i in range(19 * n_steps + 1):
        if i % n_steps == 0:
            states.append(state)
        prey, hunter = state
        change = np.array([prey * (0.6 * (1 - prey / 250) - 0.028 * hunter), hunter * (0.024 * prey - 0.8)])
        state = state + change / n_steps
    return times, np.array(states) * np.exp(0.25 * random.normal(size=(20, 2)))


def predator() -> tuple[Call, Call]:
    """20 counts of prey and predator by Lotka-Volterra's equations with log-normal noise.

    Does the prey crowd itself? M2 has a capacity ~ LogNormal(log 200, 1). Rates ~ LogNormal(log 0.7 or log 0.03, 0.5),
    starts ~ LogNormal(log 20, 0.7), sigma ~ HalfNormal(0.5).
    """
    times, counts = predator_data()
    return (partial(_predator, limited=False), times, counts), (partial(_predator, limited=True), times, counts)


# An epidemic --------------------------------------------------------------------------------------------------------


def _infection(state, _, rate, recovery):
    well, ill = state
    new = rate * well * ill / N_BOYS
    return jnp.stack([-new, new - recovery * ill])


def _epidemic(in_bed, overdispersed):
    rate = numpyro.sample("rate", dist.LogNormal(0.5, 0.5))
    recovery = numpyro.sample("recovery", dist.LogNormal(-0.7, 0.5))
    # without a limit of the solver's steps, as users write it: far from the posterior it takes hours
    states = odeint(_infection, jnp.array([N_BOYS - 1.0, 1.0]), jnp.arange(float(len(in_bed))), rate, recovery)
    ill = jnp.maximum(states[:, 1], 1e-6)
    if overdispersed:
        numpyro.sample("in_bed", dist.NegativeBinomial2(ill, numpyro.sample("size", dist.Exponential(0.2))), obs=in_bed)
    else:
        numpyro.sample("in_bed", dist.Poisson(ill), obs=in_bed)


N_BOYS = 763


def epidemic_data() -> np.ndarray:
    """Boys in bed on 14 days of an influenza in an English boarding school, 1978."""
    return np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])


def epidemic() -> tuple[Call, Call]:
    """The ill of 763 boys by susceptible, infected and recovered: Poisson (M1) or negative binomial noise (M2)?

    rate ~ LogNormal(0.5, 0.5), recovery ~ LogNormal(-0.7, 0.5), size ~ Exponential(0.2).
    """
    y = epidemic_data()
    return (partial(_epidemic, overdispersed=False), y), (partial(_epidemic, overdispersed=True), y)


# Gaussian process ---------------------------------------------------------------------------------------------------


def _process(x, y, kernel):
    amplitude = numpyro.sample("amplitude", dist.HalfNormal(2.0))
    length = numpyro.sample("length", dist.LogNormal(0.0, 1.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    covariance = amplitude**2 * kernel(jnp.abs(x[:, None] - x) / length) + noise**2 * jnp.eye(len(x))
    numpyro.sample("y", dist.MultivariateNormal(0.0, covariance), obs=y)


def _squared_exponential(r):
    return jnp.exp(-(r**2) / 2)


def _matern(r):
    return (1 + np.sqrt(3) * r) * jnp.exp(-np.sqrt(3) * r)


def gaussian_process_data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(102)
    x = np.sort(random.uniform(0, 10, size=34))
    r = np.abs(x[:, None] - x) * np.sqrt(3) / 1.5
    root = np.linalg.cholesky(1.2**2 * (1 + r) * np.exp(-r) + 1e-10 * np.eye(34))
    return x, root @ random.normal(size=34) + 0.2 * random.normal(size=34)


def gaussian_process() -> tuple[Call, Call]:
    """34 points of a rough curve: squared-exponential (M1) or Matern 3/2 kernel (M2)?

    amplitude ~ HalfNormal(2), length ~ LogNormal(0, 1), noise ~ HalfNormal(1) in both.
    """
    data = gaussian_process_data()
    return (partial(_process, kernel=_squared_exponential), *data), (partial(_process, kernel=_matern), *data)


# Change point -------------------------------------------------------------------------------------------------------


def _one_rate(years, counts):
    early = numpyro.sample("early", dist.Gamma(2.0, 1.0))
    numpyro.sample("counts", dist.Poisson(early * jnp.ones(len(years))), obs=counts)


def _two_rates(years, counts):
    early = numpyro.sample("early", dist.Gamma(2.0, 1.0))
    late = numpyro.sample("late", dist.Gamma(2.0, 1.0))
    switch = numpyro.sample("switch", dist.Uniform(0.0, 112.0))
    numpyro.sample("counts", dist.Poisson(jnp.where(years < switch, early, late)), obs=counts)


def change_point_data() -> tuple[np.ndarray, np.ndarray]:
    """The middles of 112 years, and the accidents in each."""
    years = np.arange(112) + 0.5
    return years, np.random.default_rng(103).poisson(np.where(years < 41, 2.4, 1.4))


def change_point() -> tuple[Call, Call]:
    """Accidents in 112 years: a constant rate (M1), or a step at a time that is uniform over the years (M2)?

    Rates ~ Gamma(2, 1). The likelihood jumps at every year as the switch passes it, and is flat between.
    """
    data = change_point_data()
    return (_one_rate, *data), (_two_rates, *data)


# Scalar and vector --------------------------------------------------------------------------------------------------


def _means(group, y, shape):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand(shape))
    sd = numpyro.sample("sd", dist.HalfNormal(5.0).expand([2]))
    numpyro.sample("y", dist.Normal(mu[group] if shape else mu, sd[group]), obs=y)


def scalar_vector_data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(104)
    group = np.repeat([0, 1], [25, 15])
    return group, np.array([1.0, 2.2])[group] + np.array([0.8, 3.0])[group] * random.normal(size=40)


def scalar_vector() -> tuple[Call, Call]:
    """Two groups of 25 and 15 with standard deviations of their own: one mean or two?

    mu ~ Normal(0, 5) is a scalar in M1 and a vector of two in M2; sd ~ HalfNormal(5) is a vector in both.
    """
    data = scalar_vector_data()
    return (partial(_means, shape=()), *data), (partial(_means, shape=(2,)), *data)


# Ordered categories -------------------------------------------------------------------------------------------------


def _ordered(x, y, with_slope):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0)) if with_slope else 0.0
    steps = dist.Normal(jnp.array([-1.0, 0.0, 0.0]), 1.0)
    cuts = numpyro.sample("cuts", dist.TransformedDistribution(steps, dist.transforms.OrderedTransform()))
    numpyro.sample("y", dist.OrderedLogistic(slope * x, cuts), obs=y)


def ordered_data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(105)
    x = random.normal(size=80)
    return x, np.searchsorted([-1.2, 0.1, 1.5], 0.5 * x + random.logistic(size=80))


def ordered() -> tuple[Call, Call]:
    """80 answers in 4 ordered categories, without (M1) and with (M2) a covariate of slope ~ Normal(0, 1).

    The first cut ~ Normal(-1, 1); the logs of the two steps from cut to cut ~ Normal(0, 1).
    """
    data = ordered_data()
    return (partial(_ordered, with_slope=False), *data), (partial(_ordered, with_slope=True), *data)


# Mixture ------------------------------------------------------------------------------------------------------------


def _one_gaussian(y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(3.0))
    numpyro.sample("y", dist.Normal(mu, sigma), obs=y)


def _two_gaussians(y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([2]))
    sigma = numpyro.sample("sigma", dist.HalfNormal(3.0))
    weight = numpyro.sample("weight", dist.Uniform(0.0, 1.0))
    labels = dist.Categorical(probs=jnp.stack([weight, 1 - weight]))
    numpyro.sample("y", dist.MixtureSameFamily(labels, dist.Normal(mu, sigma)), obs=y)


def mixture_data() -> np.ndarray:
    random = np.random.default_rng(106)
    return np.where(random.uniform(size=80) < 0.35, -1.5, 1.5) + random.normal(size=80)


def mixture() -> tuple[Call, Call]:
    """80 points of one Gaussian (M1) or of two of one width, their labels summed out (M2)?

    Means ~ Normal(0, 5) without order, so M2 has two mirrored peaks; sigma ~ HalfNormal(3), weight ~ Uniform(0, 1).
    """
    y = mixture_data()
    return (_one_gaussian, y), (_two_gaussians, y)


# Survival -----------------------------------------------------------------------------------------------------------


def _survival(treated, time, seen, with_shape):
    level = numpyro.sample("level", dist.Normal(2.0, 2.0))
    effect = numpyro.sample("effect", dist.Normal(0.0, 1.0))
    shape = numpyro.sample("shape", dist.LogNormal(0.0, 0.5)) if with_shape else 1.0
    scale = jnp.exp(level + effect * treated)
    numpyro.sample("time", dist.Weibull(scale[seen], shape), obs=time[seen])
    numpyro.factor("censored", -jnp.sum((time[~seen] / scale[~seen]) ** shape))


def survival_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Treatment, time, and whether the end was seen by time 12, of 60 patients."""
    random = np.random.default_rng(107)
    treated = np.repeat([0.0, 1.0], 30)
    time = np.exp(1.8 + 0.5 * treated) * random.weibull(1.4, size=60)
    return treated, np.minimum(time, 12.0), time < 12.0


def survival() -> tuple[Call, Call]:
    """60 times of survival, some censored (numpyro.factor): exponential (M1) or Weibull with a shape of its own (M2)?

    log scale = level + effect * treated; level ~ Normal(2, 2), effect ~ Normal(0, 1), shape ~ LogNormal(0, 0.5).
    """
    data = survival_data()
    return (partial(_survival, with_shape=False), *data), (partial(_survival, with_shape=True), *data)


# All ----------------------------------------------------------------------------------------------------------------

IN_NUMPYRO: dict[str, Callable[[], tuple[Call, Call]]] = {
    "predator": predator,
    "epidemic": epidemic,
    "volatility": latent.volatility,
    "volatility_scan": latent.volatility_scan,
    "volatility_noncentred": latent.volatility_noncentred,
    "random_walk": latent.random_walk,
    "random_walk_constant": latent.random_walk_constant,
    "horseshoe": latent.horseshoe,
    "gaussian_process": gaussian_process,
    "change_point": change_point,
    "scalar_vector": scalar_vector,
    "ordered": ordered,
    "counts_centred": latent.counts_centred,
    "counts_noncentred": latent.counts_noncentred,
    "groups_centred": latent.groups_centred,
    "groups_noncentred": latent.groups_noncentred,
    "few_groups": latent.few_groups,
    "slopes_numpyro": latent.slopes_numpyro,
    "mixture": mixture,
    "survival": survival,
}
WITH_FACTORS = {"survival"}  # their numpyro.factor terms belong to the likelihood


def _numpyro_pair(name: str) -> tuple[Any, Any]:
    """Both models as crossfade takes them."""
    said = {"factors": "likelihood"} if name in WITH_FACTORS else {}
    first, second = (crossfade.from_numpyro(*call, **said) for call in IN_NUMPYRO[name]())
    return first, second


IN_PYMC: dict[str, Callable[[], tuple[Any, Any]]] = {
    "slopes_pymc": latent.slopes_pymc,
    "volatility_pymc": latent.volatility_pymc,
    "random_walk_pymc": latent.random_walk_pymc,
}


def galaxies() -> tuple[Any, Any]:
    """Velocities of 82 galaxies, three normals (M1) or four (M2), of any numbering; the world's own priors."""
    from crossfade.worlds import mixture

    velocity = crossfade.data.load("galaxy")["velocity"].to_numpy(float)
    return mixture.summed(velocity, 3), mixture.summed(velocity, 4)


PAIRS: dict[str, Callable[[], tuple[Any, Any]]] = {
    **{name: partial(_numpyro_pair, name) for name in IN_NUMPYRO},
    **IN_PYMC,
    "galaxies": galaxies,
}
