"""The hard pairs with many latent values: states, coefficients, groups. hard_pairs.py lists them."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.contrib.control_flow import scan

Call = tuple[Any, ...]  # a model and its arguments
N_STATES = 150


# Stochastic volatility ----------------------------------------------------------------------------------------------


def _volatility_parameters(student):
    mu = numpyro.sample("mu", dist.Normal(0.0, 2.0))
    phi = 2 * numpyro.sample("persistence", dist.Beta(20.0, 1.5)) - 1
    sigma = numpyro.sample("sigma", dist.HalfNormal(0.5))
    dof = numpyro.sample("dof", dist.Gamma(2.0, 0.1)) if student else None
    return mu, phi, sigma, dof


def _returns(log_variance, dof):
    scale = jnp.exp(log_variance / 2)
    return dist.Normal(0.0, scale) if dof is None else dist.StudentT(dof, 0.0, scale)


def _volatility(y, student):
    mu, phi, sigma, dof = _volatility_parameters(student)
    lag = np.arange(len(y))[:, None] - np.arange(len(y))
    root = sigma * jnp.where(lag >= 0, phi ** np.maximum(lag, 0), 0.0)  # of the covariance, column by innovation
    root = root.at[:, 0].divide(jnp.sqrt(1 - phi**2))
    h = numpyro.sample("h", dist.MultivariateNormal(mu, scale_tril=root))
    numpyro.sample("y", _returns(h, dof), obs=y)


def _volatility_scan(y, student):
    mu, phi, sigma, dof = _volatility_parameters(student)

    def step(h, y_t):
        h = numpyro.sample("h", dist.Normal(mu + phi * (h - mu), sigma))
        numpyro.sample("y", _returns(h, dof), obs=y_t)
        return h, None

    start = numpyro.sample("start", dist.Normal(mu, sigma / jnp.sqrt(1 - phi**2)))
    numpyro.sample("y_start", _returns(start, dof), obs=y[0])
    scan(step, start, y[1:])


def _volatility_noncentred(y, student):
    mu, phi, sigma, dof = _volatility_parameters(student)
    z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([len(y)]))

    def step(a, z_t):
        a = phi * a + sigma * z_t
        return a, a

    start = sigma / jnp.sqrt(1 - phi**2) * z[0]
    _, rest = jax.lax.scan(step, start, z[1:])
    numpyro.sample("y", _returns(mu + jnp.concatenate([start[None], rest]), dof), obs=y)


def volatility_data() -> np.ndarray:
    """150 returns with Student-t noise of 6 degrees of freedom."""
    random = np.random.default_rng(201)
    h = np.empty(N_STATES)
    h[0] = -1.0 + 0.3 / np.sqrt(1 - 0.95**2) * random.normal()
    for t in range(1, N_STATES):
        h[t] = -1.0 + 0.95 * (h[t - 1] + 1.0) + 0.3 * random.normal()
    return np.exp(h / 2) * random.standard_t(6, size=N_STATES)


def volatility() -> tuple[Call, Call]:
    """150 returns whose log variance is a stationary AR(1), centred: Gaussian (M1) or Student-t noise (M2)?

    mu ~ Normal(0, 2), (phi + 1)/2 ~ Beta(20, 1.5), sigma ~ HalfNormal(0.5), degrees of freedom ~ Gamma(2, 0.1).
    """
    y = volatility_data()
    return (partial(_volatility, student=False), y), (partial(_volatility, student=True), y)


def volatility_scan() -> tuple[Call, Call]:
    """The question of `volatility`, each state drawn given the last in NumPyro's scan: the same answer."""
    y = volatility_data()
    return (partial(_volatility_scan, student=False), y), (partial(_volatility_scan, student=True), y)


def volatility_noncentred() -> tuple[Call, Call]:
    """The question of `volatility`, the states made from standard normal innovations: the same answer."""
    y = volatility_data()
    return (partial(_volatility_noncentred, student=False), y), (partial(_volatility_noncentred, student=True), y)


def volatility_pymc() -> tuple[Any, Any]:
    """The question of `volatility` as two PyMC models, the states by AR: the same answer."""
    import pymc as pm

    y, found = volatility_data(), []
    for student in (False, True):
        with pm.Model() as model:
            mu = pm.Normal("mu", 0.0, 2.0)
            phi = 2 * pm.Beta("persistence", 20.0, 1.5) - 1
            sigma = pm.HalfNormal("sigma", 0.5)
            start = pm.Normal.dist(0.0, sigma / pm.math.sqrt(1 - phi**2))
            h = pm.AR("h", rho=phi[None], sigma=sigma, init_dist=start, steps=len(y) - 1)
            scale = pm.math.exp((mu + h) / 2)
            if student:
                pm.StudentT("y", pm.Gamma("dof", 2.0, 0.1), 0.0, sigma=scale, observed=y)
            else:
                pm.Normal("y", 0.0, scale, observed=y)
        found.append(model)
    return found[0], found[1]


# Random walk --------------------------------------------------------------------------------------------------------


def _walk(y, with_drift):
    level = numpyro.sample("level", dist.Normal(0.0, 5.0))
    step = numpyro.sample("step", dist.HalfNormal(1.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    drift = numpyro.sample("drift", dist.Normal(0.0, 0.2)) if with_drift else 0.0
    walk = numpyro.sample("walk", dist.GaussianRandomWalk(step, num_steps=len(y)))
    numpyro.sample("y", dist.Normal(level + walk + drift * jnp.arange(1, len(y) + 1), noise), obs=y)


def _constant(y):
    level = numpyro.sample("level", dist.Normal(0.0, 5.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.Normal(level, noise), obs=y)


def random_walk_data() -> np.ndarray:
    random = np.random.default_rng(202)
    return 1.0 + np.cumsum(0.05 + 0.3 * random.normal(size=N_STATES)) + 0.6 * random.normal(size=N_STATES)


def still_data() -> np.ndarray:
    """150 values of a level that hardly walks."""
    random = np.random.default_rng(203)
    return 1.0 + np.cumsum(0.06 * random.normal(size=N_STATES)) + 0.6 * random.normal(size=N_STATES)


def random_walk() -> tuple[Call, Call]:
    """150 noisy values of a Gaussian random walk (M1), or of one with a drift ~ Normal(0, 0.2) per step (M2)?

    level ~ Normal(0, 5), step ~ HalfNormal(1), noise ~ HalfNormal(1); the walk is a parameter of 150 values.
    """
    y = random_walk_data()
    return (partial(_walk, with_drift=False), y), (partial(_walk, with_drift=True), y)


def random_walk_pymc() -> tuple[Any, Any]:
    """The question of `random_walk` as two PyMC models: the same answer."""
    import pymc as pm

    y, found = random_walk_data(), []
    for with_drift in (False, True):
        with pm.Model() as model:
            level = pm.Normal("level", 0.0, 5.0)
            step = pm.HalfNormal("step", 1.0)
            noise = pm.HalfNormal("noise", 1.0)
            drift = pm.Normal("drift", 0.0, 0.2) if with_drift else 0.0
            start = pm.Normal.dist(0.0, step)
            walk = pm.GaussianRandomWalk("walk", sigma=step, init_dist=start, steps=len(y) - 1)
            pm.Normal("y", level + walk + drift * np.arange(1, len(y) + 1), noise, observed=y)
        found.append(model)
    return found[0], found[1]


def random_walk_constant() -> tuple[Call, Call]:
    """150 noisy values of a constant level (M1) or of a level that walks (M2), with the priors of `random_walk`?

    All 150 values of the walk, and its step, belong to M2 alone.
    """
    y = still_data()
    return (_constant, y), (partial(_walk, with_drift=False), y)


# Horseshoe ----------------------------------------------------------------------------------------------------------


def _horseshoe(x, y, sparse):
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    if sparse:
        overall = numpyro.sample("overall", dist.HalfCauchy(1.0))
        local = numpyro.sample("local", dist.HalfCauchy(1.0).expand([x.shape[1]]))
        scale = overall * local
    else:
        scale = jnp.ones(x.shape[1])
    beta = numpyro.sample("beta", dist.Normal(0.0, scale))
    numpyro.sample("y", dist.Normal(x @ beta, sigma), obs=y)


def horseshoe_data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(204)
    x = random.normal(size=(60, 10))
    return x, x @ np.array([1.5, -1.0, 0.4] + [0.0] * 7) + random.normal(size=60)


def horseshoe() -> tuple[Call, Call]:
    """60 rows, 10 covariates, of which 3 matter: coefficients ~ Normal(0, 1) (M1) or a centred horseshoe (M2)?

    sigma ~ HalfNormal(2); the overall and the 10 local scales ~ HalfCauchy(1).
    """
    data = horseshoe_data()
    return (partial(_horseshoe, sparse=False), *data), (partial(_horseshoe, sparse=True), *data)


# Counts in groups ---------------------------------------------------------------------------------------------------


def _counts(group, treated, y, centred, with_effect):
    mu = numpyro.sample("mu", dist.Normal(0.0, 2.0))
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    effect = numpyro.sample("effect", dist.Normal(0.0, 1.0)) if with_effect else 0.0
    mean = mu + effect * treated
    with numpyro.plate("groups", len(treated)):
        if centred:
            level = numpyro.sample("level", dist.Normal(mean, tau))
        else:
            level = mean + tau * numpyro.sample("z", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Poisson(jnp.exp(level[group])), obs=y)


def counts_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group of each of 120 counts, treatment of each of 40 groups, the counts."""
    random = np.random.default_rng(205)
    group, treated = np.repeat(np.arange(40), 3), np.arange(40) % 2.0
    level = 0.8 + 0.4 * treated + 0.5 * random.normal(size=40)
    return group, treated, random.poisson(np.exp(level[group]))


def _counts_pair(centred: bool) -> tuple[Call, Call]:
    data = counts_data()
    first, second = (partial(_counts, centred=centred, with_effect=with_effect) for with_effect in (False, True))
    return (first, *data), (second, *data)


def counts_centred() -> tuple[Call, Call]:
    """120 Poisson counts in 40 groups with normal log rates, centred: no effect of treatment (M1) or one (M2)?

    mu ~ Normal(0, 2), tau ~ HalfNormal(1), effect ~ Normal(0, 1).
    """
    return _counts_pair(centred=True)


def counts_noncentred() -> tuple[Call, Call]:
    """The question of `counts_centred`, the groups made from standard normal values: the same answer."""
    return _counts_pair(centred=False)


# Patients -----------------------------------------------------------------------------------------------------------

DOF = 4.0


def _groups(patient, y, centred, student):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfNormal(2.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    with numpyro.plate("patients", 59):
        if centred:
            level = numpyro.sample("level", dist.StudentT(DOF, mu, tau) if student else dist.Normal(mu, tau))
        else:
            level = mu + tau * numpyro.sample("z", dist.StudentT(DOF) if student else dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(level[patient], sigma), obs=y)


def groups_data() -> tuple[np.ndarray, np.ndarray]:
    """Patient of each observation, two to four of each of 59, and the observations; the patients are Student-t."""
    random = np.random.default_rng(206)
    patient = np.repeat(np.arange(59), random.integers(2, 5, size=59))
    level = 2.0 + random.standard_t(DOF, size=59)
    return patient, level[patient] + 0.8 * random.normal(size=len(patient))


def _groups_pair(centred: bool) -> tuple[Call, Call]:
    data = groups_data()
    first, second = (partial(_groups, centred=centred, student=student) for student in (False, True))
    return (first, *data), (second, *data)


def groups_centred() -> tuple[Call, Call]:
    """59 patients, two to four Gaussian observations each: are their levels, centred, normal (M1) or Student-t (M2)?

    mu ~ Normal(0, 5), tau ~ HalfNormal(2), sigma ~ HalfNormal(2); 4 degrees of freedom.
    """
    return _groups_pair(centred=True)


def groups_noncentred() -> tuple[Call, Call]:
    """The question of `groups_centred`, the levels made from standard values: the same answer."""
    return _groups_pair(centred=False)


# Intercepts and slopes ----------------------------------------------------------------------------------------------

N_SUBJECTS, N_DAYS = 18, 10
MEANS, MEAN_SDS, SCALES, NOISE = np.array([250.0, 10.0]), np.array([50.0, 10.0]), np.array([40.0, 10.0]), 50.0


def _slopes(days, y, correlated):
    mean = numpyro.sample("mean", dist.Normal(MEANS, MEAN_SDS))
    scale = numpyro.sample("scale", dist.HalfNormal(SCALES))
    sigma = numpyro.sample("sigma", dist.HalfNormal(NOISE))
    if correlated:
        root = scale[:, None] * numpyro.sample("root", dist.LKJCholesky(2, concentration=2.0))
        with numpyro.plate("subjects", N_SUBJECTS):
            line = numpyro.sample("line", dist.MultivariateNormal(mean, scale_tril=root))
    else:
        line = numpyro.sample("line", dist.Normal(mean, scale).expand([N_SUBJECTS, 2]))
    numpyro.sample("y", dist.Normal(line[:, :1] + line[:, 1:] * days, sigma), obs=y)


def slopes_data() -> tuple[np.ndarray, np.ndarray]:
    """Days, and reaction times [18, 10] in ms: later days are slower, by a slope of each subject's own."""
    random = np.random.default_rng(207)
    days = np.arange(float(N_DAYS))
    z = random.normal(size=(2, N_SUBJECTS))
    intercept, slope = 250 + 25 * z[0], 10 + 6 * (0.4 * z[0] + np.sqrt(1 - 0.4**2) * z[1])
    return days, intercept[:, None] + slope[:, None] * days + 25 * random.normal(size=(N_SUBJECTS, N_DAYS))


def slopes_numpyro() -> tuple[Call, Call]:
    """18 subjects on 10 days: are intercepts and slopes, centred, independent (M1) or correlated, LKJ(2) (M2)?

    mean ~ Normal((250, 10), (50, 10)), scale ~ HalfNormal((40, 10)), sigma ~ HalfNormal(50).
    """
    data = slopes_data()
    return (partial(_slopes, correlated=False), *data), (partial(_slopes, correlated=True), *data)


def slopes_pymc() -> tuple[Any, Any]:
    """The question of `slopes_numpyro` as two PyMC models, the correlated one by LKJCholeskyCov: the same answer.

    The log density in PyMC 5.28 is not normalised, here 2 log(4/3) = 0.575 too large: the answer is that of LKJ(2).
    """
    import pymc as pm

    days, y = slopes_data()
    with pm.Model() as independent:
        mean = pm.Normal("mean", MEANS, MEAN_SDS)
        scale = pm.HalfNormal("scale", SCALES)
        sigma = pm.HalfNormal("sigma", NOISE)
        line = pm.Normal("line", mean, scale, shape=(N_SUBJECTS, 2))
        pm.Normal("y", line[:, :1] + line[:, 1:] * days, sigma, observed=y)
    with pm.Model() as correlated:
        mean = pm.Normal("mean", MEANS, MEAN_SDS)
        sigma = pm.HalfNormal("sigma", NOISE)
        root, _, _ = pm.LKJCholeskyCov("root", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(SCALES))
        line = pm.MvNormal("line", mean, chol=root, shape=(N_SUBJECTS, 2))
        pm.Normal("y", line[:, :1] + line[:, 1:] * days, sigma, observed=y)
    return independent, correlated


# Few groups, pooled or not ------------------------------------------------------------------------------------------


def _few(y, pooled):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    level = mu
    if not pooled:
        tau = numpyro.sample("tau", dist.HalfNormal(1.0))
        level = mu + tau * numpyro.sample("z", dist.Normal(0.0, 1.0).expand([len(y)]))[:, None]
    numpyro.sample("y", dist.Normal(level, sigma), obs=y)


def few_groups_data() -> np.ndarray:
    """Ten groups of six."""
    random = np.random.default_rng(207)
    return 1.0 + 0.4 * random.normal(size=(10, 1)) + random.normal(size=(10, 6))


def few_groups() -> tuple[Call, Call]:
    """Ten groups of six Gaussian observations: one level (M1), or levels of their own, from standard values (M2)?

    mu ~ Normal(0, 5), sigma ~ HalfNormal(2), tau ~ HalfNormal(1).
    """
    y = few_groups_data()
    return (partial(_few, pooled=True), y), (partial(_few, pooled=False), y)
