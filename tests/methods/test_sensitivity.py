"""The curve of the log Bayes factor by a prior's scale, against closed forms, from exact draws and no chain."""

import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate, rng
from linear_pairs import KINDS, crossed, log_bayes_factor, nested, priors
from numpyro import distributions as dist
from scipy.special import logsumexp

import crossfade
from crossfade.density.joint import as_joint, nothing
from crossfade.density.model import Model
from crossfade.methods import sensitivity
from crossfade.methods.sensitivity import FACTORS, Sensitivity, _check_components, prior_sensitivity
from crossfade.types import CrossfadeError, Estimate, Result, Sharing
from crossfade.worlds import linear

N_CHAINS, N_DRAWS = 32, 200


def posterior(m: Model, offset: int) -> dict[str, np.ndarray]:
    """Independent draws of a linear model: normal, or normal-inverse-gamma where the prior is scaled by the noise."""
    random, likelihood = rng(offset), m.log_likelihood
    mean, precision = priors(m)
    known = likelihood.variance
    scale = 1.0 if known is None else float(known)
    gram = likelihood.design.T @ likelihood.design / scale + np.diag(precision)
    centre = np.linalg.solve(gram, likelihood.design.T @ likelihood.y / scale + precision * mean)
    root = np.linalg.inv(np.linalg.cholesky(gram)).T
    step = random.normal(size=(N_CHAINS, N_DRAWS, len(centre))) @ root.T
    found = {}
    if known is None:
        a, b = float(m.priors["variance"].concentration), float(m.priors["variance"].rate)
        square = likelihood.y @ likelihood.y + precision @ mean**2 - centre @ gram @ centre
        rate = b + square / 2
        variance = rate / random.gamma(a + len(likelihood.y) / 2, size=(N_CHAINS, N_DRAWS))
        found["variance"], step = variance, step * np.sqrt(variance)[:, :, None]
    return found | {name: centre[i] + step[:, :, i] for i, name in enumerate(likelihood.names)}


def result(value: float, *draws: dict[str, np.ndarray], error: float = 0.0, **about) -> Result:
    """As `compare` returns it; without an error of its own the curve's is that of the weights alone."""
    headline = Estimate(value, error, 31.0, "mbar")
    return Result(headline, "trustworthy", (), {}, {}, {}, (), Sharing((), (), ()), about, draws=tuple(draws))


def rescaled(m: Model, name: str, factor: float, **kind) -> Model:
    """The model with `factor` times the prior scale of one coefficient, from scratch."""
    likelihood = m.log_likelihood
    if name not in likelihood.names:
        return m
    mean, precision = priors(m)
    precision[likelihood.names.index(name)] /= factor**2
    arguments = {"prior_mean": mean, "prior_precision": precision, **kind}
    return linear.model(likelihood.y, likelihood.design, likelihood.names, **arguments)


CASES = {
    "of M2 alone": (nested, "known", "b"),
    "of M1 alone": (crossed, "known", "b"),
    "shared, one prior": (nested, "known", "a"),
    "shared, two priors": (crossed, "known", "a"),
    "given the variance": (nested, "scaled", "b"),
    "shared, given the variance": (crossed, "scaled", "a"),
}


def curve(case: str) -> tuple[Sensitivity, np.ndarray]:
    make, kind, name = CASES[case]
    pair = make(**KINDS[kind])
    found = prior_sensitivity(*pair, result(log_bayes_factor(pair), posterior(pair[0], 1), posterior(pair[1], 2)), name)
    exact = [log_bayes_factor(tuple(rescaled(m, name, f, **KINDS[kind]) for m in pair)) for f in found.factors]
    return found, np.array(exact)


def assert_curve(found: Sensitivity, exact: np.ndarray) -> None:
    for estimate, truth, fine in zip(found.estimates, exact, found.reliable, strict=True):
        if fine:
            assert_estimate(estimate, truth, max_error=0.12)


@pytest.mark.parametrize("case", CASES)
def test_the_curve_is_the_closed_form(case):
    found, exact = curve(case)
    np.testing.assert_array_equal(found.factors, FACTORS)
    assert_curve(found, exact)
    assert found.reliable.sum() >= 10
    assert np.ptp(exact) > 0.3  # a flat curve would be no test
    assert found.estimates[6] == Estimate(exact[6], 0.0, 31.0, "mbar")


@pytest.mark.parametrize("case", ["of M2 alone", "shared, two priors"])
def test_inverted_weights_are_caught(case, monkeypatch):
    right = sensitivity._log_weights
    monkeypatch.setattr(sensitivity, "_log_weights", lambda *args: (-weight for weight in right(*args)))
    with pytest.raises(AssertionError, match="sigma"):
        assert_curve(*curve(case))


def test_one_model_of_two_forgotten_is_caught():
    _, exact = curve("shared, two priors")
    pair = crossed(**KINDS["known"])
    hidden = pair[0], Model({"c": pair[1].priors["c"]}, pair[1].log_likelihood)
    without = {name: own for name, own in posterior(pair[1], 2).items() if name != "a"}
    half = prior_sensitivity(*hidden, result(exact[6], posterior(pair[0], 1), without), "a")
    with pytest.raises(AssertionError, match="sigma"):
        assert_curve(half, exact)


def normal_mean(prior: dist.Distribution, n: int = 20, mean: float = 0.5) -> Model:
    """y_i ~ N(mu, 1) with this prior of mu; `mean` is that of the data."""
    return Model({"mu": prior}, lambda theta: -n / 2 * (theta["mu"] - mean) ** 2)


def on_a_grid(prior: dist.Distribution) -> tuple[np.ndarray, np.ndarray]:
    """Points of the support and log prior x likelihood there."""
    mu = np.linspace(-2, 3, 20001) if prior.support(-1.0) else np.linspace(1e-4, 3, 20001)
    with crossfade.float64():
        return mu, np.asarray(prior.log_prob(jnp.asarray(mu))) - 10 * (mu - 0.5) ** 2


def drawn_from_a_grid(prior: dist.Distribution, offset: int) -> dict[str, np.ndarray]:
    mu, log_joint = on_a_grid(prior)
    weight = np.exp(log_joint - log_joint.max())
    return {"mu": rng(offset).choice(mu, p=weight / weight.sum(), size=(N_CHAINS, N_DRAWS))}


FAMILIES = {
    "HalfNormal": lambda s: dist.HalfNormal(s),
    "StudentT": lambda s: dist.StudentT(3.0, 0.2, s),
    "HalfCauchy": lambda s: dist.HalfCauchy(s),
    "Laplace": lambda s: dist.Laplace(0.0, s),
    "LogNormal": lambda s: dist.LogNormal(-0.5, s),
    "TruncatedNormal": lambda s: dist.TruncatedNormal(0.1, s, low=0.0),
    "Independent": lambda s: dist.Normal(0.0, s).expand([1]).to_event(1),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_with_a_scale(family):
    scalar = FAMILIES[family] if family != "Independent" else lambda s: dist.Normal(0.0, s)
    draws = drawn_from_a_grid(scalar(0.6), 3)
    if family == "Independent":
        draws = {"mu": draws["mu"][:, :, None]}
    model = normal_mean(FAMILIES[family](0.6))
    found = prior_sensitivity(nothing(), model, result(0.0, {}, draws), "mu", factors=[0.5, 2.0])
    log_z = {s: logsumexp(on_a_grid(scalar(s))[1]) for s in (0.3, 0.6, 1.2)}
    assert_curve(found, np.array(list(log_z.values())) - log_z[0.6])
    assert found.reliable.sum() >= 2  # draws near 0 make it hard for a LogNormal


def test_a_new_prior_by_hand():
    """Of a Gamma there is no scale; the curve need not go through the result."""
    draws = drawn_from_a_grid(dist.Gamma(2.0, 4.0), 4)
    model, run = normal_mean(dist.Gamma(2.0, 4.0)), result(0.0, {}, draws)
    found = prior_sensitivity(nothing(), model, run, "mu", factors=[2, 0.5], prior=lambda f: dist.Gamma(2.0, 4.0 / f))
    for factor, estimate in zip((0.5, 2.0), found.estimates, strict=True):
        log_z = [logsumexp(on_a_grid(dist.Gamma(2.0, 4.0 / f))[1]) for f in (factor, 1)]
        assert_estimate(estimate, log_z[0] - log_z[1], max_error=0.05)
    assert found.scales == ("Gamma(2, 8)", "Gamma(2, 2)")


def test_too_far_is_marked():
    pair = nested(**KINDS["known"])
    run = result(log_bayes_factor(pair), posterior(pair[0], 1), posterior(pair[1], 2))
    found = prior_sensitivity(*pair, run, "a", factors=[1e-5, 0.002, 0.01, 1, 2])
    assert found.reliable.tolist() == [False, False, False, True, True]
    assert found.flips == ()  # whatever the unreliable part says
    narrow = prior_sensitivity(*pair, run, "a", factors=[0.5], prior=lambda f: dist.Uniform(90.0, 91.0))
    assert not narrow.reliable.any()  # no draw is there
    assert narrow.estimates[0].error == np.inf


def test_errors_add_up_and_the_rows_say_all():
    pair = nested(**KINDS["known"])
    draws = posterior(pair[0], 1), posterior(pair[1], 2)
    alone = prior_sensitivity(*pair, result(1.0, *draws), "b", factors=[3])
    found = prior_sensitivity(*pair, result(1.0, *draws, error=0.2), "b", factors=[3])
    assert found.estimates[0].error == 0.2
    assert found.estimates[1].error == pytest.approx(0.2 + alone.estimates[1].error)
    assert [row[0] for row in found.table()] == [1.0, 3.0]
    assert found.table()[1][1:] == [
        "Normal(0, 3)", found.estimates[1].value, found.estimates[1].error, found.pareto_k[1, 1], True
    ]  # fmt: skip


def test_flips_lie_where_the_closed_form_crosses_zero():
    estimates = tuple(Estimate(value, 0.1, 3.0) for value in (-2.0, -1.0, 1.0, 3.0, -1.0))
    k = np.array([[-np.inf] * 5, [0.9, 0.1, 0.1, 0.9, 0.1]])
    found = Sensitivity("a", np.array([0.25, 0.5, 2.0, 4.0, 8.0]), ("",) * 5, estimates, k)
    assert found.flips == pytest.approx((1.0,))
    pair = nested(**KINDS["known"])
    run = result(0.3, posterior(pair[0], 1), posterior(pair[1], 2))  # so that it crosses
    curve = prior_sensitivity(*pair, run, "b")
    assert len(curve.flips) == 2  # little is gained by a prior that is too narrow, and lost by one that is too wide
    offset = 0.3 - log_bayes_factor(pair)
    for flip in curve.flips:
        at_flip = log_bayes_factor((pair[0], rescaled(pair[1], "b", flip, **KINDS["known"]))) + offset
        assert abs(at_flip) < 0.05


def test_a_shared_name_with_two_priors_says_both():
    pair = crossed(**KINDS["known"])
    found = prior_sensitivity(*pair, result(0.0, posterior(pair[0], 1), posterior(pair[1], 2)), "a", factors=[2])
    assert found.scales[1] == "M1: Normal(0, 2), M2: Normal(0.5, 1.41421)"
    scaled = crossed(**KINDS["scaled"])
    run = result(0.0, posterior(scaled[0], 1), posterior(scaled[1], 2))
    found = prior_sensitivity(*scaled, run, "b", factors=[2])
    assert found.scales[1] == "Normal(0, variance / 0.5), scale x 2"


def bad(**changes):
    pair = nested(**KINDS["known"])
    run = result(1.0, posterior(pair[0], 1), posterior(pair[1], 2))
    arguments = {"m1": pair[0], "m2": pair[1], "result": run, "name": "b"} | changes
    return prior_sensitivity(**arguments)


def test_what_cannot_be_done_is_said():
    m1, m2 = nested(**KINDS["known"])
    draws = posterior(m1, 1), posterior(m2, 2)
    lone = {name: values[:1] for name, values in draws[1].items()}
    odd = normal_mean(dist.Gamma(2.0, 4.0))
    of_gamma = {"m1": nothing(), "m2": odd, "name": "mu", "result": result(0.0, {}, {"mu": np.ones((4, 50))})}
    walk = Model({"mu": dist.GaussianRandomWalk(1.0, 3)}, lambda theta: 0.0)
    of_walk = of_gamma | {"m2": walk, "result": result(0.0, {}, {"mu": np.ones((4, 50, 3))})}
    for changes, message in (
        ({"result": result(1.0, draws[1], draws[1])}, r"of another M1, with a parameter 'b' that this one lacks"),
        ({"name": "c"}, r"no parameter 'c': M1 has \['one', 'a'\]"),
        ({"m2": as_joint(m2)._replace(factors=None, model=None)},
         r"M2 is known by its log joint alone.*crossfade.Model, with from_numpyro"),
        ({"result": result(1.0, {}, {})}, r"no posterior draws of 'b' in M2: compare by the default method"),
        ({"result": result(1.0, draws[0], lone)}, r"draws of 'b' in M2 are of 1 chain"),
        ({"result": result(np.nan, *draws)}, r"no finite log Bayes factor"),
        ({"result": result(1.0, *draws)._replace(verdict="do not use")}, r"no finite log Bayes factor"),
        ({"result": result(1.0, *draws, priors={"b": "Normal(0, 9)"})}, r"made with b ~ Normal\(0, 9\).*this M2"),
        (of_gamma, r"prior of 'mu' in M2 is Gamma\(2, 4\), which has no scale.*pass prior="),
        (of_gamma | {"prior": lambda f: dist.Normal(0, f)}, r"'mu' in M2, Normal\(0, 0.25\), reaches beyond"),
        (of_walk, r"GaussianRandomWalk\(1\), which has no scale"),
        ({"prior": lambda f: dist.Normal(np.zeros(2), f)}, r"shape \(2,\) for 'b' in M2, of shape \(\)"),
        ({"prior": lambda f: f}, r"prior= returns 0.25 for 'b' in M2: it must return a proper NumPyro"),
        ({"factors": [0.0, 1.0]}, r"factors = \[0.0, 1.0\]: give positive numbers"),
        (of_gamma | {"result": result(0.0, {}, {"mu": -np.ones((4, 50))}), "prior": lambda f: odd.priors["mu"]},
         r"draws of 'mu' are impossible under its prior"),
    ):  # fmt: skip
        with pytest.raises(CrossfadeError, match=message):
            bad(**changes)


def test_a_joint_without_the_parameter_is_fine():
    m1, m2 = nested(**KINDS["known"])
    run = result(1.0, {}, posterior(m2, 2))
    assert len(prior_sensitivity(as_joint(m1), m2, run, "b").factors) == 13
    assert crossfade.prior_sensitivity is prior_sensitivity


def test_an_answer_from_draws_near_even_odds_comes_with_other_widths():
    """Half and twice as wide, beside the closed form of the model with that prior; a clear answer comes alone."""
    from crossfade.methods.widths import with_widths

    pair = nested(**KINDS["known"])
    differs = Sharing(("a",), (), ("b",))
    draws = posterior(pair[0], 1), posterior(pair[1], 2)
    near = result(0.5, *draws)._replace(sharing=differs)  # whatever the answer, the change of it is that of the prior
    joints = tuple(as_joint(m) for m in pair)
    found = with_widths(near, *joints).about["widths"]
    for (names, factor, value, error), wanted in zip(found, (0.5, 2.0), strict=True):
        exact = log_bayes_factor(tuple(rescaled(m, "b", wanted, **KINDS["known"]) for m in pair))
        assert (names, factor) == (["b"], wanted)
        assert abs(value - 0.5 - (exact - log_bayes_factor(pair))) < 4 * error < 0.4
    assert "widths" not in with_widths(result(2.4, *draws)._replace(sharing=differs), *joints).about
    assert "widths" not in with_widths(near._replace(verdict="do not use"), *joints).about
    assert "widths" not in with_widths(near._replace(about={**near.about, "evidence": True}), *joints).about


def test_a_curve_prints_as_a_table():
    text = str(curve("shared, two priors")[0])
    assert "prior" in text and "Sensitivity(" not in text and len(text.splitlines()) > 10


def test_a_prior_that_tells_components_apart_is_refused():
    """Draws in one numbering know nothing of the others where the new prior is not the same for all."""
    theta = {"mu": np.array([-1.0, 2.0])}
    _check_components([dist.Normal(0.0, 3.0), lambda p: dist.Normal(np.zeros(2), 3.0)], "mu", theta, "'mu' in M2")
    with pytest.raises(CrossfadeError, match="prior= tells them apart"):
        _check_components([dist.Normal(np.array([-1.0, 1.0]), 3.0)], "mu", theta, "'mu' in M2")
