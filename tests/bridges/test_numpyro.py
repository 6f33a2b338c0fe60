"""NumPyro models: the same log joint as SciPy's, the right volume element, and a refusal of all that has neither."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from assertions import rng
from likelihoods import evaluate
from numpyro import distributions as dist
from numpyro.contrib.control_flow import scan
from numpyro.handlers import block, condition, mask, reparam, scale
from numpyro.infer.reparam import LocScaleReparam
from scipy import stats
from scipy.special import betaln, gammaln

from crossfade.bridges.numpyro import from_numpyro
from crossfade.data import load
from crossfade.density.joint import as_joint
from crossfade.density.model import describe, given
from crossfade.paths.path import named_sharing
from crossfade.types import CrossfadeError
from crossfade.worlds.glm import logistic

pytestmark = pytest.mark.usefixtures("double_precision")

Y = np.array([0.3, -1.2, 2.5, 0.7])


def log_joint(model, theta):
    return float(evaluate(model.log_joint, {name: jnp.asarray(value) for name, value in theta.items()}))


def log_evidence(model, grid):
    """The integral of exp of the flat log density over a box, by the trapezoidal rule."""
    density = as_joint(model).density
    size = density.coordinates.size
    axes = np.meshgrid(*[grid] * size, indexing="ij")
    points = np.stack([np.ravel(axis) for axis in axes], axis=1)
    values = jax.jit(jax.vmap(density))(points)
    return float(jax.nn.logsumexp(values)) + size * np.log(grid[1] - grid[0])


def schools(y, sigma, group):
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    tau = numpyro.sample("tau", dist.HalfNormal(5.0))
    n_groups = len(np.unique(group))  # needs the values of an argument
    with numpyro.plate("groups", n_groups):
        effect = numpyro.sample("effect", dist.Normal(mu, tau))
        slope = numpyro.sample("slope", dist.StudentT(4, 0, 2.5))
    numpyro.deterministic("total", jnp.sum(effect))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(effect[group] + slope[group], sigma), obs=y)


GROUP = np.array([0, 0, 1, 1])


def test_a_hierarchical_model_has_the_log_joint_of_scipy():
    model = from_numpyro(schools, Y, sigma=0.8, group=GROUP)
    assert model.names == ("mu", "tau", "effect", "slope")
    r = rng(900)
    for _ in range(3):
        mu, tau, effect, slope = r.normal(), r.gamma(2), r.normal(size=2), r.normal(size=2)
        expected = stats.norm(0, 10).logpdf(mu) + stats.halfnorm(scale=5).logpdf(tau)
        expected += stats.norm(mu, tau).logpdf(effect).sum() + stats.t(4, 0, 2.5).logpdf(slope).sum()
        expected += stats.norm(effect[GROUP] + slope[GROUP], 0.8).logpdf(Y).sum()
        theta = {"mu": mu, "tau": tau, "effect": effect, "slope": slope}
        assert log_joint(model, theta) == pytest.approx(expected, abs=1e-10)


def constrained(y, counts):
    corner = numpyro.sample("corner", dist.LKJCholesky(2, 1.7))
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))
    width = numpyro.sample("width", dist.Uniform(1, 4))
    share = numpyro.sample("share", dist.Beta(2, 3))
    sd = numpyro.sample("sd", dist.HalfCauchy(jnp.ones(2)).to_event(1))
    numpyro.sample("counts", dist.Multinomial(total_count=9, probs=weights), obs=counts)
    with mask(mask=np.array([True, False, True, True])):
        numpyro.sample("y", dist.Normal(corner[1, 0] * share, width * sd[0] / sd[1]), obs=y)


def test_constraints_and_masks_have_the_log_joint_of_scipy():
    y = np.array([0.3, np.nan, 2.5, 0.7])
    counts = np.array([2, 3, 4])
    model = from_numpyro(constrained, y, counts)
    np.testing.assert_array_equal(model.data, [2, 3, 4, 0.3, 2.5, 0.7])  # sites by name; what is masked is no data
    r = rng(901)
    for _ in range(3):
        rho, weights, width, share = r.uniform(-1, 1), r.dirichlet([1, 1, 1]), r.uniform(1, 4), r.uniform()
        sd = r.gamma(2, size=2)
        expected = 0.7 * np.log1p(-(rho**2)) - (2.4 * np.log(2) + betaln(1.7, 1.7))  # of the correlation of LKJ(1.7)
        expected += stats.dirichlet([1, 2, 3]).logpdf(weights) + stats.uniform(1, 3).logpdf(width)
        expected += stats.beta(2, 3).logpdf(share) + stats.halfcauchy().logpdf(sd).sum()
        expected += stats.multinomial(9, weights).logpmf(counts)
        expected += stats.norm(rho * share, width * sd[0] / sd[1]).logpdf(y[[0, 2, 3]]).sum()
        corner = np.array([[1, 0], [rho, np.sqrt(1 - rho**2)]])
        theta = {"corner": corner, "weights": weights, "width": width, "share": share, "sd": sd}
        assert log_joint(model, theta) == pytest.approx(expected, abs=1e-10)
    slopes = jax.jit(jax.grad(lambda theta: model.log_likelihood(theta)))(theta)
    assert all(np.all(np.isfinite(slope)) for slope in slopes.values())  # the NaN stays behind the mask


def test_unconstrained_vectors_carry_the_right_volume_in_one_dimension():
    def binomial(y):
        p = numpyro.sample("p", dist.Beta(2, 3))
        numpyro.sample("y", dist.Binomial(10, p), obs=y)

    expected = np.log(120) + betaln(9, 6) - betaln(2, 3)
    assert log_evidence(from_numpyro(binomial, 7), np.linspace(-25, 25, 2001)) == pytest.approx(expected, abs=1e-9)


def test_unconstrained_vectors_carry_the_right_volume_in_two_dimensions():
    def multinomial(y):
        p = numpyro.sample("p", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))
        numpyro.sample("y", dist.Multinomial(9, p), obs=y)

    y, prior = np.array([2, 3, 4]), np.array([1, 2, 3])
    expected = gammaln(10) - gammaln(y + 1).sum() + gammaln(prior + y).sum() - gammaln(15)
    expected -= gammaln(prior).sum() - gammaln(6)
    assert log_evidence(from_numpyro(multinomial, y), np.linspace(-20, 20, 401)) == pytest.approx(expected, abs=1e-9)


def pima(x, names, y):
    eta = numpyro.sample("intercept", dist.Normal(0, 10))
    for name, column in zip(names, x.T, strict=True):
        eta += numpyro.sample(name, dist.Normal(0, 10)) * column
    numpyro.sample("y", dist.Bernoulli(logits=eta), obs=y)


def test_the_pima_pair_is_ours():
    table = load("pima")
    built = []
    for ours, names in zip(logistic.pima(), ("npreg glu bmi ped", "npreg glu bmi ped age"), strict=True):
        x = table[names.split()].to_numpy(float)
        x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
        theirs = from_numpyro(pima, x, names.split(), y=table["y"].to_numpy())
        built.append(theirs)
        assert theirs.names == ours.names and np.array_equal(theirs.data, ours.data)
        assert all(eqx.tree_equal(theirs.priors[name], ours.priors[name]) for name in ours.names)
        theta = dict(zip(ours.names, rng(902).normal(size=len(ours.names)), strict=True))
        assert log_joint(theirs, theta) == pytest.approx(log_joint(ours, theta), abs=1e-9)
    assert named_sharing(*built).tempered == ()


def test_priors_read_well():
    model = from_numpyro(schools, Y, sigma=0.8, group=GROUP)
    words = {name: describe(prior) for name, prior in model.priors.items()}
    assert words["mu"] == "Normal(0, 10)"
    assert words["effect"] == "Normal, given mu, tau"
    assert words["slope"] == "StudentT(4, 0, 2.5) of shape (2,)"


def test_priors_follow_their_parents_and_need_nothing_else():
    model = from_numpyro(schools, Y, sigma=0.8, group=GROUP)
    effect = given(model.priors["effect"], {"mu": jnp.array(2.0), "tau": jnp.array(3.0)})
    x = np.array([0.3, -7.0])
    np.testing.assert_allclose(effect.log_prob(x), stats.norm(2, 3).logpdf(x), atol=1e-12)
    drawn = jax.eval_shape(model.sample_prior, jax.random.key(0))
    assert {name: value.shape for name, value in drawn.items()} == {"mu": (), "tau": (), "effect": (2,), "slope": (2,)}


def plain(x, y):
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(b * x, 0.1), obs=y)


def test_arrays_are_arguments_of_the_program_and_exact():
    x = np.array([0.1, 0.2, 0.3], np.float32)
    y = [0.1, 0.2, 0.3]  # Python floats
    model = from_numpyro(plain, x, np.array(y))
    wide = x.astype(float)
    assert {tuple(leaf) for leaf in map(np.asarray, jax.tree.leaves(model.log_likelihood))} >= {tuple(wide), tuple(y)}
    expected = stats.norm(0.7 * wide, 0.1).logpdf(y).sum() + stats.norm.logpdf(0.7)
    assert log_joint(model, {"b": 0.7}) == pytest.approx(expected, abs=1e-12)
    single = from_numpyro(plain, jnp.asarray(x), jnp.asarray(x))
    np.testing.assert_array_equal(single.data, wide)


SCALE = 1.0


def reads_a_global(y):
    a = numpyro.sample("a", dist.Normal(0, SCALE))
    numpyro.sample("y", dist.Normal(a, SCALE), obs=y)


def test_changed_globals_and_data_are_seen(monkeypatch):
    theta = {"a": 0.4}
    for sd, y in ((1.0, Y), (3.0, Y), (3.0, Y + 1)):
        monkeypatch.setitem(globals(), "SCALE", sd)
        model = from_numpyro(reads_a_global, y)
        expected = stats.norm(0, sd).logpdf(0.4) + stats.norm(0.4, sd).logpdf(y).sum()
        assert log_joint(model, theta) == pytest.approx(expected, abs=1e-12)
        np.testing.assert_array_equal(model.data, y)


def test_handlers_around_the_model_are_kept():
    def model():
        a = numpyro.sample("a", dist.Normal(1, 2))
        b = numpyro.sample("b", dist.Normal(a, 3))
        numpyro.sample("y", dist.Normal(b, 1), obs=0.7)

    built = from_numpyro(condition(reparam(model, config={"b": LocScaleReparam(0)}), {"a": jnp.array(0.2)}))
    assert built.names == ("b_decentered",)
    expected = stats.norm(1, 2).logpdf(0.2) + stats.norm.logpdf(0.3) + stats.norm(0.2 + 0.9, 1).logpdf(0.7)
    assert log_joint(built, {"b_decentered": 0.3}) == pytest.approx(expected, abs=1e-12)


def test_shapes_of_samples_and_steps_of_scans():
    def walk(y):
        step = numpyro.sample("step", dist.Normal(0, 2), sample_shape=(2,))
        sd = numpyro.sample("sd", dist.Gamma(2, 1))

        def move(level, now):
            level = level + numpyro.sample("innovation", dist.Normal(0, 1)) * sd
            numpyro.sample("y", dist.Normal(level + step[0], jnp.exp(step[1])), obs=now)
            return level, None

        scan(move, jnp.zeros(()), y)

    model = from_numpyro(walk, Y)
    drawn = jax.eval_shape(model.sample_prior, jax.random.key(1))
    assert drawn["step"].shape == (2,) and drawn["innovation"].shape == (4,)
    theta = {"step": np.array([0.3, -0.2]), "sd": np.array(0.8), "innovation": np.array([0.1, -1.0, 0.5, 2.0])}
    level = np.cumsum(theta["innovation"]) * 0.8 + 0.3
    expected = stats.norm(0, 2).logpdf(theta["step"]).sum() + stats.gamma(2).logpdf(0.8)
    expected += stats.norm.logpdf(theta["innovation"]).sum() + stats.norm(level, np.exp(-0.2)).logpdf(Y).sum()
    assert log_joint(model, theta) == pytest.approx(expected, abs=1e-10)


def test_states_of_a_scan_are_known_as_a_series():
    def returning(y):
        level, pull = numpyro.sample("level", dist.Normal(0, 1)), numpyro.sample("pull", dist.Uniform(-1, 1))
        sd = numpyro.sample("sd", dist.Gamma(2, 1))

        def move(state, now):
            state = numpyro.sample("state", dist.Normal(level + pull * (state - level), sd))
            numpyro.sample("y", dist.Normal(state, 1), obs=now)
            return state, None

        scan(move, jnp.full((), 3.0), y)

    joint = from_numpyro(returning, Y)
    theta = {"level": jnp.array(0.7), "pull": jnp.array(-0.4), "sd": jnp.array(1.3)}
    series = joint.conditional["state"](theta)
    assert series.start_scale is None and set(joint.conditional) == {"state"}
    np.testing.assert_allclose(
        [x for x in series if x is not None], [0.7 - 0.4 * 2.3, 0.7 * 1.4, -0.4, 1.3], rtol=1e-12
    )


def test_a_support_that_moves_with_a_parameter_excludes_data():
    def taxi(y):
        top = numpyro.sample("top", dist.Pareto(1.0, 2.0))
        numpyro.sample("y", dist.Uniform(0, top), obs=y)

    model = from_numpyro(taxi, np.array([0.5, 3.0]))
    assert float(model.log_likelihood({"top": 4.0})) == pytest.approx(-2 * np.log(4))
    assert float(model.log_likelihood({"top": 2.0})) == -np.inf  # NumPyro itself says -2 log 2


def latent(distribution, **kwargs):
    def model(y=Y):
        numpyro.sample("site", distribution, **kwargs)
        numpyro.sample("y", dist.Normal(0, 1), obs=y)

    return model


def scaled_data(y=Y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    with scale(scale=2.0):
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def with_statement(statement):
    def model(y=Y):
        b = numpyro.sample("b", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(b, 1), obs=y)
        statement(b)

    return model


def subsampled(y=Y):
    b = numpyro.sample("b", dist.Normal(0, 1))
    with numpyro.plate("few", 4, subsample_size=2) as index:
        numpyro.sample("y", dist.Normal(b, 1), obs=y[index])


def moving_support(y=Y):
    def move(level, now):
        level = numpyro.sample("level", dist.Uniform(level, level + 2))
        numpyro.sample("y", dist.Normal(level, 1), obs=now)
        return level, None

    scan(move, jnp.zeros(()), y)


def hidden(y=Y):
    b = numpyro.sample("b", dist.Normal(0, 1))
    with block():
        noise = numpyro.sample("noise", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(b + noise, 1), obs=y)


def branching(y=Y):
    b = numpyro.sample("b", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(b if b > 0 else -b, 1), obs=y)


REFUSED = {
    "discrete": (latent(dist.Poisson(3)), "'site' is discrete and not observed: pass it as data"),
    "improper": (latent(dist.ImproperUniform(dist.constraints.positive, (2,), ())), "prior of 'site' is improper"),
    "delta": (latent(dist.Delta(1.0)), "'site' is a Delta"),
    "sphere": (latent(dist.ProjectedNormal(jnp.ones(3))), "support of 'site' .* no map"),
    "masked": (latent(dist.Normal(jnp.zeros(2), 1).mask(np.array([True, False]))), "'site' is masked but not observed"),
    "scaled data": (scaled_data, "observed site 'y' is scaled"),
    "scaled": (scale(latent(dist.Normal(0, 1)), scale=2.0), "prior of 'site' is scaled"),
    "missing": (latent(dist.Normal(0, 1), obs=1.0, obs_mask=np.array(False)), "'site_unobserved' is masked"),
    "factor": (
        with_statement(lambda b: numpyro.factor("penalty", -(b**2))),
        "'penalty' is a numpyro.factor.*pass factors=.likelihood. to from_numpyro.*from_log_",
    ),
    "param": (with_statement(lambda b: numpyro.param("weight", 1.0)), "'weight' is a numpyro.param"),
    "subsample": (subsampled, "plate 'few' takes a subsample"),
    "a moving support": (moving_support, "support of 'level' depends on other parameters"),
    "no site": (lambda: None, "neither a parameter nor data"),
    "no data": (lambda: numpyro.sample("b", dist.Normal(0, 1)), "no observed site, only 'b': pass the data"),
    "hidden randomness": (hidden, "random numbers that are no sites"),
    "branches": (branching, "cannot be traced by JAX"),
    "not a function": (dist.Normal(0, 1).loc, "needs a model function, not a"),
    "impossible data": (
        with_statement(lambda b: numpyro.sample("z", dist.HalfNormal(1), obs=-1.0)),
        "values of 'z' are",
    ),
    "missing data": (with_statement(lambda b: numpyro.sample("z", dist.Normal(b, 1), obs=np.nan)), "values of 'z' are"),
    "counted twice": (
        with_statement(lambda b: numpyro.sample("z", dist.Normal(b * jnp.ones(4), 1), obs=Y[:, None])),
        r"'z' have shape \(4, 1\) and their log densities \(4, 4\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_site_and_the_way_out(case):
    model, message = REFUSED[case]
    with pytest.raises(CrossfadeError, match=message):
        from_numpyro(model)


def markov(y, first=0.0):
    sd = numpyro.sample("sd", dist.HalfNormal(1.0))

    def move(level, now):
        level = numpyro.sample("level", dist.Normal(0.8 * level, sd))
        numpyro.sample("y", dist.Normal(level, 0.5), obs=now)
        return level, None

    scan(move, jnp.asarray(first), y)


def test_a_site_drawn_step_by_step_has_the_log_joint_of_scipy():
    joint = from_numpyro(markov, Y)
    assert joint.names == ("sd", "level") and joint.places["level"][0] == (4,)
    assert joint.factors is None and joint.exact_start and joint.separable
    assert joint.priors == {"sd": "HalfNormal(1)", "level": "Normal, given sd, level"}
    np.testing.assert_array_equal(joint.data, Y)
    r = rng(903)
    for _ in range(3):
        sd, level = r.gamma(2), r.normal(size=4)
        theta = {"sd": jnp.asarray(sd), "level": jnp.asarray(level)}
        log_prior = stats.halfnorm.logpdf(sd) + stats.norm(0.8 * np.append(0.0, level[:-1]), sd).logpdf(level).sum()
        assert float(evaluate(joint.log_prior, theta)) == pytest.approx(log_prior, abs=1e-10)
        log_likelihood = stats.norm(level, 0.5).logpdf(Y).sum()
        assert float(evaluate(joint.log_likelihood, theta)) == pytest.approx(log_likelihood, abs=1e-10)
    outside = {"sd": jnp.array(-1.0), "level": jnp.zeros(4)}
    assert float(evaluate(joint.log_joint, outside)) == -np.inf


def test_starts_of_such_a_site_are_draws_of_the_prior():
    joint = from_numpyro(markov, Y + 100)  # the data must not be seen
    draws = evaluate(jax.vmap(joint.start), jax.random.split(jax.random.key(4), 4000))
    level, sd = np.asarray(draws["level"]), np.asarray(draws["sd"])
    assert stats.kstest(sd, stats.halfnorm.cdf).pvalue > 1e-4
    last = np.column_stack([np.zeros(4000), level[:, :-1]])
    steps, wrong = ((level - persistence * last) / sd[:, None] for persistence in (0.8, 0.4))
    assert stats.kstest(steps.ravel(), stats.norm.cdf).pvalue > 1e-4
    assert stats.kstest(wrong.ravel(), stats.norm.cdf).pvalue < 1e-4


def test_the_evidence_of_steps_is_that_of_a_gaussian():
    def fixed(y):
        def move(level, now):
            level = numpyro.sample("level", dist.Normal(0.8 * level, 1.0))
            numpyro.sample("y", dist.Normal(level, 0.5), obs=now)
            return level, None

        scan(move, jnp.zeros(()), y)

    root = np.array([[1.0, 0.0], [0.8, 1.0]])
    exact = stats.multivariate_normal(np.zeros(2), root @ root.T + 0.25 * np.eye(2)).logpdf(Y[:2])
    found = log_evidence(from_numpyro(fixed, Y[:2]), np.linspace(-8, 8, 161))
    assert found == pytest.approx(exact, abs=1e-9)
    assert abs(stats.multivariate_normal(np.zeros(2), 1.25 * np.eye(2)).logpdf(Y[:2]) - exact) > 0.1


TIME, SEEN = np.array([0.4, 1.3, 3.0, 2.2, 3.0]), np.array([True, True, False, True, False])


def survival(time, seen, prior_sd=1.0):
    level = numpyro.sample("level", dist.Normal(0.0, prior_sd))
    numpyro.sample("time", dist.Exponential(jnp.exp(level)), obs=time[seen])  # needs the values of an argument
    numpyro.factor("censored", -jnp.exp(level) * jnp.sum(time[~seen]))


def test_a_factor_may_be_part_of_the_likelihood():
    joint = from_numpyro(survival, TIME, SEEN, factors="likelihood")
    np.testing.assert_array_equal(joint.data, TIME[SEEN])
    said = "is a normalised probability of data, given the parameters, is taken on trust"
    assert joint.notes == (f"that the numpyro.factor 'censored' {said}",)
    law = stats.expon(scale=np.exp(-0.3))
    expected = law.logpdf(TIME[SEEN]).sum() + law.logsf(TIME[~SEEN]).sum()
    found = float(evaluate(joint.log_likelihood, {"level": jnp.array(0.3)}))
    assert found == pytest.approx(expected, abs=1e-12)
    assert log_joint(joint, {"level": 0.3}) == pytest.approx(expected + stats.norm.logpdf(0.3), abs=1e-12)


def test_a_likelihood_may_be_factors_alone_and_of_counts():
    def counted(counts):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        numpyro.factor("counts", dist.Poisson(rate).log_prob(counts).sum())

    joint = from_numpyro(counted, np.array([2, 0, 3]), factors="likelihood")
    assert joint.data is None
    expected = stats.poisson(1.7).logpmf([2, 0, 3]).sum()
    assert float(evaluate(joint.log_likelihood, {"rate": jnp.array(1.7)})) == pytest.approx(expected, abs=1e-12)


def test_data_that_a_factor_hides_are_not_asked_for():
    def hidden_data():
        level = numpyro.sample("level", dist.Normal(0.0, 1.0))
        numpyro.factor("y", dist.Normal(level, 1.0).log_prob(Y).sum())

    joint = from_numpyro(hidden_data, factors="likelihood")
    expected = stats.norm.logpdf(0.3) + stats.norm(0.3, 1).logpdf(Y).sum()
    assert log_joint(joint, {"level": 0.3}) == pytest.approx(expected, abs=1e-12)


def penalised(y, prior_sd=2.0):
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(b, 1.0), obs=y)
    numpyro.factor("penalty", -((b / prior_sd) ** 2))


def scaled_factor(y):
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    with scale(scale=2.0):
        numpyro.factor("term", dist.Normal(b, 1.0).log_prob(y).sum())


def repeated_factor(y):
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", 4):
        numpyro.factor("term", dist.Normal(b, 1.0).log_prob(y).sum())


def test_factors_that_are_refused():
    with pytest.raises(CrossfadeError, match=r"'term' has shape \(\) and is in plates of shape \(4,\)"):
        from_numpyro(repeated_factor, Y, factors="likelihood")
    with pytest.raises(CrossfadeError, match=r"numpyro.factor 'penalty' does not change when the data do.*prior"):
        from_numpyro(penalised, Y, prior_sd=3.0, factors="likelihood")
    with pytest.raises(CrossfadeError, match="'term' is scaled"):
        from_numpyro(scaled_factor, Y, factors="likelihood")
    with pytest.raises(CrossfadeError, match=r"factors = 'prior': give factors=.*functools.partial"):
        from_numpyro(survival, TIME, SEEN, factors="prior")
