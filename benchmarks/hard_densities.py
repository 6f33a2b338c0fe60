"""The models of the hard pairs written once more in NumPy, with whatever can be integrated out integrated out.

Every function takes points [n, d] of unconstrained parameters and gives log p(data, parameters) [n], Jacobians of the
logarithms and logits included. Of the pairs' files only data and constants are used.
"""

from __future__ import annotations

import hard_pairs as pairs
import hard_pairs_latent as latent
import numpy as np
from scipy.linalg import eigh
from scipy.special import betaln, expit, gammaln, log_expit, logsumexp

LOG_2PI = np.log(2 * np.pi)


def normal(x, mean=0.0, sd=1.0):
    return -(((x - mean) / sd) ** 2) / 2 - np.log(sd) - LOG_2PI / 2


def half_normal(log_x, sd):
    """Density of log x, x half-normal."""
    return np.log(2) + normal(np.exp(log_x), 0.0, sd) + log_x


def half_cauchy(log_x):
    return np.log(2 / np.pi) - np.logaddexp(0, 2 * log_x) + log_x


def student(x, dof):
    return (
        gammaln((dof + 1) / 2)
        - gammaln(dof / 2)
        - np.log(dof * np.pi) / 2
        - (dof + 1) / 2 * np.log1p(np.square(x) / dof)
    )


# Predator and prey: (log alpha, log beta, log gamma, log delta, two log starts, log sigma[, log capacity]) ----------

_TIMES, _COUNTS = pairs.predator_data()


def populations(theta, n_steps=25):
    """States [time, 2, n] by Runge and Kutta's fourth-order method, on the logs of the states."""
    alpha, beta, gamma, delta = np.exp(theta[:, :4].T)
    crowding = np.exp(-theta[:, 7]) if theta.shape[1] > 7 else 0.0

    def flow(x):
        prey, hunter = np.exp(np.clip(x, -80, 80))
        return np.stack([alpha * (1 - crowding * prey) - beta * hunter, delta * prey - gamma])

    x = theta[:, 4:6].T
    states = [x]
    for length in np.diff(_TIMES):
        step = length / n_steps
        for _ in range(n_steps):
            a = flow(x)
            b = flow(x + step / 2 * a)
            c = flow(x + step / 2 * b)
            d = flow(x + step * c)
            x = x + step / 6 * (a + 2 * b + 2 * c + d)
        states.append(x)
    return np.array(states)


def predator(theta):
    with np.errstate(all="ignore"):
        logs, sigma = populations(theta), np.exp(theta[:, 6])
        fit = np.sum(normal(np.log(_COUNTS)[:, :, None], logs, sigma), axis=(0, 1)) - np.sum(np.log(_COUNTS))
    means, sds = np.log([0.7, 0.03, 0.7, 0.03, 20, 20]), np.array([0.5] * 4 + [0.7] * 2)
    prior = np.sum(normal(theta[:, :6], means, sds), axis=1) + half_normal(theta[:, 6], 0.5)
    if theta.shape[1] > 7:
        prior = prior + normal(theta[:, 7], np.log(200), 1.0)
    return np.where(np.isfinite(fit), fit, -1e10) + prior


# An epidemic: (log rate, log recovery[, log size]) ------------------------------------------------------------------

_IN_BED = pairs.epidemic_data()


def epidemic(theta, n_steps=100):
    """The numbers of ill boys by Runge and Kutta's method on the logs of the well and the ill."""
    rate, recovery = np.exp(theta[:, :2].T)

    def flow(x):
        well, ill = np.exp(np.clip(x, -80, 80)) / pairs.N_BOYS
        return np.stack([-rate * ill, rate * well - recovery])

    x = np.log(np.array([pairs.N_BOYS - 1.0, 1.0]))[:, None] * np.ones(len(theta))
    logs = [x[1]]
    for _ in _IN_BED[1:]:
        for _ in range(n_steps):
            a = flow(x)
            b = flow(x + a / (2 * n_steps))
            c = flow(x + b / (2 * n_steps))
            d = flow(x + c / n_steps)
            x = x + (a + 2 * b + 2 * c + d) / (6 * n_steps)
        logs.append(x[1])
    mean, y = np.maximum(np.exp(np.array(logs)), 1e-6), _IN_BED[:, None]
    prior = normal(theta[:, 0], 0.5, 0.5) + normal(theta[:, 1], -0.7, 0.5)
    if theta.shape[1] == 2:
        return prior + np.sum(y * np.log(mean) - mean - gammaln(y + 1), axis=0)
    size = np.exp(theta[:, 2])
    fit = gammaln(y + size) - gammaln(size) - gammaln(y + 1) - size * np.log1p(mean / size) - y * np.log1p(size / mean)
    return prior + np.log(0.2) - 0.2 * size + theta[:, 2] + np.sum(fit, axis=0)


# Volatility: (mu, logit persistence, log sigma[, log dof]), the states summed out on a grid -------------------------

_RETURNS = latent.volatility_data()


def _filtered(mu, phi, sigma, dof, finer=1.0):
    """log p(returns) by the forward recursion of a chain on a grid of 6.5 stationary standard deviations each way.

    Nodes lie at most one standard deviation of an innovation apart: the trapezoidal rule is then exact to 1e-6.
    """
    width = np.sqrt(1 - phi**2)  # of an innovation, the stationary standard deviation being 1
    u, spacing = np.linspace(-6.5, 6.5, int(finer * np.clip(13 / width, 200, 2000)) + 1, retstep=True)
    scale = np.exp((mu + sigma / width * u) / 2)
    z = _RETURNS[:, None] / scale
    weight = np.exp((normal(z) if dof is None else student(z, dof)) - np.log(scale))
    move = np.exp(-(((u[:, None] - phi * u) / width) ** 2) / 2)  # [to, from]
    move /= move.sum(axis=0)
    now, total = np.exp(normal(u)) * spacing, 0.0
    for t, own in enumerate(weight):
        now = own * (now if t == 0 else move @ now)
        norm = now.sum()
        total += np.log(norm)
        now /= norm
    return total


def volatility(theta):
    mu, logit, log_sigma = theta[:, :3].T
    p = expit(logit)
    prior = normal(mu, 0.0, 2.0) + half_normal(log_sigma, 0.5)
    prior = prior + 20 * log_expit(logit) + 1.5 * log_expit(-logit) - betaln(20, 1.5)
    dof = np.exp(theta[:, 3]) if theta.shape[1] > 3 else [None] * len(theta)
    if theta.shape[1] > 3:
        prior = prior + 2 * np.log(0.1) + 2 * theta[:, 3] - 0.1 * dof - gammaln(2)
    points = zip(mu, 2 * p - 1, np.exp(log_sigma), dof, strict=True)
    with np.errstate(all="ignore"):
        fit = np.array([_filtered(*point) for point in points])
    return np.where(np.isfinite(fit), fit, -1e10) + prior


# Random walk: (log step, log noise), or (log noise) if the level is constant; level, drift and walk are Gaussian ----

_T = np.arange(1.0, latent.N_STATES + 1)
_WALK_VALUES, _WALK_VECTORS = eigh(np.minimum(_T[:, None], _T))


def _gaussian(y, variance, directions):
    """log Normal(y; 0, U diag(variance) U' + sum of directions d d'), U the walk's eigenvectors, variance [n, t]."""
    y, d = _WALK_VECTORS.T @ y, _WALK_VECTORS.T @ np.column_stack(directions)
    inner = np.eye(d.shape[1]) + np.einsum("ti,nt,tj->nij", d, 1 / variance, d)
    cross = (y / variance) @ d
    square = np.sum(y**2 / variance, axis=1) - np.einsum(
        "ni,ni->n", cross, np.linalg.solve(inner, cross[..., None])[..., 0]
    )
    return -(square + np.sum(np.log(variance), axis=1) + np.linalg.slogdet(inner)[1] + len(y) * LOG_2PI) / 2


def walk(theta, y, drift):
    step, noise = np.exp(theta).T
    directions = [5 * np.ones(len(y))] + ([0.2 * _T] if drift else [])
    variance = step[:, None] ** 2 * _WALK_VALUES + noise[:, None] ** 2
    return _gaussian(y, variance, directions) + half_normal(theta, 1.0).sum(axis=1)


def constant(theta, y):
    variance = np.exp(2 * theta) * np.ones(len(y))
    return _gaussian(y, variance, [5 * np.ones(len(y))]) + half_normal(theta[:, 0], 1.0)


# Horseshoe: (log sigma[, log overall, 10 log locals]), the coefficients Gaussian ------------------------------------

_X, _Y = latent.horseshoe_data()


def horseshoe(theta):
    sigma = np.exp(theta[:, 0])
    prior = half_normal(theta[:, 0], 2.0)
    scale = np.ones((len(theta), 10))
    if theta.shape[1] > 1:
        scale = np.exp(np.clip(theta[:, 1:2] + theta[:, 2:], -100, 100))
        prior = prior + half_cauchy(theta[:, 1:]).sum(axis=1)
    ratio = scale / sigma[:, None]
    inner = np.eye(10) + ratio[:, :, None] * (_X.T @ _X) * ratio[:, None, :]
    cross = ratio * (_X.T @ _Y) / sigma[:, None]
    square = _Y @ _Y / sigma**2 - np.einsum("ni,ni->n", cross, np.linalg.solve(inner, cross[..., None])[..., 0])
    return prior - (square + np.linalg.slogdet(inner)[1] + 60 * (2 * np.log(sigma) + LOG_2PI)) / 2


# Gaussian process: (log amplitude, log length, log noise) -----------------------------------------------------------

_POINTS, _CURVE = pairs.gaussian_process_data()


def process(theta, matern):
    amplitude, length, noise = np.exp(theta).T[:, :, None, None]
    r = np.abs(_POINTS[:, None] - _POINTS) / length
    kernel = (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r) if matern else np.exp(-(r**2) / 2)
    root = np.linalg.cholesky(amplitude**2 * kernel + noise**2 * np.eye(len(_POINTS)))
    white = np.linalg.solve(root, _CURVE[:, None])[..., 0]
    log_det = np.sum(np.log(np.diagonal(root, axis1=1, axis2=2)), axis=1)
    fit = -np.sum(white**2, axis=1) / 2 - log_det - len(_CURVE) / 2 * LOG_2PI
    return fit + half_normal(theta[:, 0], 2.0) + normal(theta[:, 1]) + half_normal(theta[:, 2], 1.0)


# Change point: rates are integrated out by hand, the switch between two years has the year's probability ------------


def change_point() -> float:
    _, counts = pairs.change_point_data()

    def piece(total, years):
        return gammaln(2 + total) - gammaln(2) - (2 + total) * np.log(1 + years)

    # A switch in (i - 1/2, i + 1/2) leaves i years before it; the first and the last such stretch are half a year long.
    before = np.concatenate([[0], np.cumsum(counts)])
    years = np.arange(113)
    parts = piece(before, years) + piece(before[-1] - before, 112 - years)
    share = np.where((years == 0) | (years == 112), 0.5, 1.0) / 112
    return float(logsumexp(parts, b=share) - piece(before[-1], 112))


# Two groups: (two log sds), the means Gaussian ----------------------------------------------------------------------

_GROUP, _VALUES = pairs.scalar_vector_data()


def means(theta, together):
    total = half_normal(theta, 5.0).sum(axis=1)
    sets = [np.arange(len(_GROUP))] if together else [np.flatnonzero(g == _GROUP) for g in (0, 1)]
    for rows in sets:
        y, precision = _VALUES[rows], np.exp(-2 * theta)[:, _GROUP[rows]]
        own = precision.sum(axis=1) + 1 / 25
        linear = precision @ y
        square = precision @ y**2 - linear**2 / own
        total += -(square - np.log(precision).sum(axis=1) + np.log(25 * own) + len(y) * LOG_2PI) / 2
    return total


# Ordered categories: (first cut, two log steps[, slope]) ------------------------------------------------------------

_COVARIATE, _ANSWERS = pairs.ordered_data()


def ordered(theta):
    cuts = np.cumsum(np.column_stack([theta[:, 0], np.exp(theta[:, 1:3])]), axis=1)
    slope = theta[:, 3:] if theta.shape[1] > 3 else np.zeros((len(theta), 1))
    below = expit(cuts[:, :, None] - (slope * _COVARIATE)[:, None])
    edges = np.concatenate([np.zeros_like(below[:, :1]), below, np.ones_like(below[:, :1])], axis=1)
    chance = np.diff(edges, axis=1)[:, _ANSWERS, np.arange(len(_ANSWERS))]
    fit = np.log(np.maximum(chance, 1e-300)).sum(axis=1)
    return fit + normal(theta[:, 0], -1.0) + normal(theta[:, 1:]).sum(axis=1)


# Mixture: (mu, log sigma) or (two asinh(mean / 2), log sigma, logit weight), both orders of the means ---------------

_MIXED = pairs.mixture_data()


def one_gaussian(theta):
    fit = normal(_MIXED, theta[:, :1], np.exp(theta[:, 1:])).sum(axis=1)
    return fit + normal(theta[:, 0], 0.0, 5.0) + half_normal(theta[:, 1], 3.0)


def two_gaussians(theta):
    mu, sigma, logit = 2 * np.sinh(theta[:, :2]), np.exp(theta[:, 2:3]), theta[:, 3:]
    with np.errstate(under="ignore"):
        z = (_MIXED - mu[..., None]) / sigma[:, None]
        kernel = np.einsum("nk,nki->ni", np.column_stack([expit(logit), expit(-logit)]), np.exp(-(z**2) / 2))
    fit = np.log(np.maximum(kernel, 1e-300)).sum(axis=1) - len(_MIXED) * (theta[:, 2] + LOG_2PI / 2)
    prior = np.sum(normal(mu, 0.0, 5.0) + np.log(2 * np.cosh(theta[:, :2])), axis=1) + half_normal(theta[:, 2], 3.0)
    return fit + prior + log_expit(logit[:, 0]) + log_expit(-logit[:, 0])


# Survival: (level, effect[, log shape]) -----------------------------------------------------------------------------

_TREATED, _TIME, _SEEN = pairs.survival_data()


def survival(theta):
    shape = np.exp(theta[:, 2:]) if theta.shape[1] > 2 else np.ones((len(theta), 1))
    log_ratio = np.log(_TIME) - theta[:, :1] - theta[:, 1:2] * _TREATED
    hazard = np.log(shape) + shape * log_ratio - np.log(_TIME)
    fit = np.sum(np.where(_SEEN, hazard, 0.0) - np.exp(shape * log_ratio), axis=1)
    prior = normal(theta[:, 0], 2.0, 2.0) + normal(theta[:, 1])
    return fit + prior + normal(theta[:, 2:], 0.0, 0.5).sum(axis=1)


# Counts: (mu, log tau[, effect]), each group's level summed out on a grid -------------------------------------------

_COUNT_GROUP, _COUNT_TREATED, _COUNT = latent.counts_data()


def counts(theta, n_nodes=161):
    sums = np.bincount(_COUNT_GROUP, weights=_COUNT)
    z, spacing = np.linspace(-8, 8, n_nodes, retstep=True)
    effect = theta[:, 2:] if theta.shape[1] > 2 else np.zeros((len(theta), 1))
    total = normal(theta[:, 0], 0.0, 2.0) + half_normal(theta[:, 1], 1.0) - gammaln(_COUNT + 1).sum()
    if theta.shape[1] > 2:
        total = total + normal(theta[:, 2])
    for treated in (0.0, 1.0):
        level = theta[:, :1] + effect * treated + np.exp(theta[:, 1:2]) * z
        base = normal(z) - 3 * np.exp(level) + np.log(spacing)
        for own in sums[treated == _COUNT_TREATED]:
            total = total + logsumexp(base + own * level, axis=1)
    return total


# Patients: (mu, log tau, log sigma), each patient's level integrated out --------------------------------------------

_PATIENT, _OBSERVED = latent.groups_data()


def groups(theta, heavy, n_nodes=161):
    mu, tau, sigma = theta[:, 0], np.exp(theta[:, 1]), np.exp(theta[:, 2])
    z, spacing = np.linspace(-8, 8, n_nodes, retstep=True)
    total = normal(mu, 0.0, 5.0) + half_normal(theta[:, 1:], 2.0).sum(axis=1)
    for patient in range(59):
        y = _OBSERVED[patient == _PATIENT]
        n, mean, rest = len(y), y.mean(), np.sum((y - y.mean()) ** 2)
        total += -rest / sigma**2 / 2 - (n - 1) * (np.log(sigma) + LOG_2PI / 2) - np.log(n) / 2
        if heavy:
            level = mean + (sigma / np.sqrt(n))[:, None] * z
            prior = student((level - mu[:, None]) / tau[:, None], latent.DOF) - np.log(tau)[:, None]
            total += logsumexp(normal(z) + prior + np.log(spacing), axis=1)
        else:
            total += normal(mean, mu, np.sqrt(tau**2 + sigma**2 / n))
    return total


# Intercepts and slopes: (two log scales, log sigma[, atanh of the correlation]), lines and their mean Gaussian ------

_DAYS, _REACTIONS = latent.slopes_data()


def slopes(theta):
    x = np.column_stack([np.ones(len(_DAYS)), _DAYS])
    lines = _REACTIONS @ x @ np.linalg.inv(x.T @ x)  # least squares of every subject
    n, rest = len(lines), np.sum((_REACTIONS - lines @ x.T) ** 2)
    scale, variance = np.exp(theta[:, :2]), np.exp(2 * theta[:, 2])
    prior = half_normal(theta[:, :2], latent.SCALES).sum(axis=1) + half_normal(theta[:, 2], latent.NOISE)
    rho = np.tanh(theta[:, 3]) if theta.shape[1] > 3 else np.zeros(len(theta))
    if theta.shape[1] > 3:
        prior = prior + np.log(0.75) + 2 * np.log1p(-(rho**2))  # LKJ(2), and the Jacobian of tanh
    spread = variance[:, None, None] * np.linalg.inv(x.T @ x)  # of a least-squares line about the true one
    between = scale[:, :, None] * scale[:, None, :] * np.where(np.eye(2) > 0, 1.0, rho[:, None, None])
    each, centre = spread + between, lines.mean(axis=0)
    scatter = (lines - centre).T @ (lines - centre)
    fit = -rest / variance / 2 - n * (len(_DAYS) / 2) * (np.log(variance) + LOG_2PI)
    fit += n * (LOG_2PI + np.linalg.slogdet(spread)[1] / 2)
    fit += -np.einsum("nij,ji->n", np.linalg.inv(each), scatter) / 2
    fit += -(n - 1) * (LOG_2PI + np.linalg.slogdet(each)[1] / 2) - np.log(n)
    of_mean, away = each / n + np.diag(latent.MEAN_SDS**2), centre - latent.MEANS
    fit += -np.einsum("i,nij,j->n", away, np.linalg.inv(of_mean), away) / 2
    return prior + fit - LOG_2PI - np.linalg.slogdet(of_mean)[1] / 2


# Few groups: (log sigma[, log tau]) -----------------------------------------------------------------------------------


def few_groups(theta):
    """Of balanced groups: the spread within, and means around one level that is integrated out."""
    y = latent.few_groups_data()
    (n_groups, n), means = y.shape, y.mean(axis=1)
    sigma = np.exp(theta[:, 0])
    tau = np.exp(theta[:, 1]) if theta.shape[1] > 1 else 0.0
    v = tau**2 + sigma**2 / n  # variance of a group's mean
    within = -np.square(y - means[:, None]).sum() / (2 * sigma**2) - n_groups * (n - 1) * (np.log(sigma) + LOG_2PI / 2)
    within = within - n_groups * np.log(n) / 2  # from all observations to the means
    around = -np.square(means - means.mean()).sum() / (2 * v) - (n_groups - 1) / 2 * (np.log(v) + LOG_2PI)
    around = around - np.log(n_groups) / 2 + normal(means.mean(), 0.0, np.sqrt(25.0 + v / n_groups))
    prior = half_normal(theta[:, 0], 2.0) + (half_normal(theta[:, 1], 1.0) if theta.shape[1] > 1 else 0.0)
    return within + around + prior
