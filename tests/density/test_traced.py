"""Functions as programs and data: equal programs are equal, whatever they close over, and unequal ones are not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from numpyro import distributions as dist

import crossfade.density.traced as module
from crossfade.api import compare
from crossfade.density.model import Model
from crossfade.density.precision import float64
from crossfade.density.traced import traced

Y = rng(700).normal(size=6)
AT = {"m": np.asarray(0.7), "s": np.asarray(1.3)}


def in_the_open(y, scale=0.5):
    return lambda p: jnp.sum(dist.StudentT(4.0, p["m"], p["s"] * scale).log_prob(y))


def behind_jit(y, scale=0.5):
    return jax.jit(in_the_open(y, scale))


def in_a_loop(y, scale=0.5):
    def step(total, value):
        return total + dist.Normal(p_now["m"], scale).log_prob(value), None

    p_now = {}

    def function(p):
        p_now.update(p)
        return jax.lax.scan(step, jnp.zeros(()), jnp.asarray(y))[0]

    return function


def in_a_branch(y, scale=0.5):
    return lambda p: jax.lax.cond(p["m"] > 0, lambda m: jnp.logaddexp(m, scale) + jnp.sum(y * m), lambda m: m, p["m"])


WRITTEN = [in_the_open, behind_jit, in_a_loop, in_a_branch]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_program_with_other_data_is_the_same_program(written):
    first, second = traced(written(Y), AT), traced(written(Y + 1), AT)
    assert first.program == second.program and hash(first.program) == hash(second.program)
    for function, y in ((first, Y), (second, Y + 1)):
        value, slope = jax.value_and_grad(function)(AT)
        expected, expected_slope = jax.value_and_grad(written(y))(AT)
        assert float(value) == pytest.approx(float(expected), abs=1e-12)
        assert all(float(slope[name]) == pytest.approx(float(expected_slope[name]), abs=1e-12) for name in AT)
    assert float(first(AT)) != pytest.approx(float(second(AT)), abs=0.1)


@pytest.mark.parametrize("written", WRITTEN)
def test_another_number_shape_or_operation_is_another_program(written):
    own = traced(written(Y), AT).program
    assert own != traced(written(Y, 0.5000001), AT).program
    assert own != traced(written(Y[:-1]), AT).program
    assert own != traced(lambda p: written(Y)(p) + 1.0, AT).program
    assert own != traced(lambda p: {"a": written(Y)(p)}, AT).program


def test_constants_that_cannot_be_arguments_count_by_value():
    """In a branch of a loop, say, or as a setting of an operation."""

    def picked(order):
        return lambda p: jnp.sum(jnp.stack([p["m"], p["s"], p["m"] ** 2])[jnp.asarray(order)][0])

    first, second = traced(picked([0, 1]), AT), traced(picked([1, 0]), AT)
    assert float(first(AT)) == 0.7 and float(second(AT)) == 1.3


def test_python_functions_that_are_called_back_are_told_apart():
    def called(number):
        shape = jax.ShapeDtypeStruct((), float)
        return lambda p: jax.pure_callback(lambda m: np.asarray(m + number), shape, p["m"])

    first, second = traced(called(1.0), AT), traced(called(2.0), AT)
    assert first.program != second.program and float(second(AT)) == pytest.approx(2.7)


def test_what_is_not_asked_for_is_left_alone():
    function = traced(lambda p: p["s"] - p["m"], AT)
    assert float(function({"extra": np.zeros(3), **AT})) == pytest.approx(0.6)


def test_a_second_data_set_compiles_nothing():
    count = 0

    @eqx.filter_jit
    def run(function, at):
        nonlocal count
        count += 1
        return function(at)

    for shift in range(3):
        run(traced(in_the_open(Y + shift), AT), AT)
    assert count == 1


@pytest.mark.slow
def test_comparisons_of_new_functions_with_new_data_share_their_programs():
    """As in a loop over genes: functions are written anew every time, with the data inside."""

    def pair(y):
        first = Model({"m": dist.Normal(0.0, 1.0)}, lambda p: dist.Normal(p["m"], 1.0).log_prob(y).sum())
        second = Model(
            {"m": dist.Normal(0.0, 1.0), "b": lambda p: dist.Normal(p["m"], 2.0)},
            lambda p: dist.Normal(p["m"] + p["b"], 1.0).log_prob(y).sum(),
        )
        return first, second

    def truth(y):
        def log_evidence(variance):  # of equal covariances between all responses
            n = len(y)
            inside = np.sum(y**2) - np.sum(y) ** 2 * variance / (1 + n * variance)
            return -0.5 * (n * np.log(2 * np.pi) + np.log1p(n * variance) + inside)

        return log_evidence(4.0 + 4.0) - log_evidence(1.0)

    found = [compare(*pair(y), target_se=0.02, n_chains=16) for y in (Y, Y + 1)]
    before = jax.monitoring  # compilation is counted by its events
    events = []
    before.register_event_duration_secs_listener(
        lambda name, seconds, **_: events.append(name) if name.endswith("backend_compile_duration") else None
    )
    found.append(compare(*pair(Y - 1), target_se=0.02, n_chains=16))
    assert len(events) < 5, events
    for result, y in zip(found, (Y, Y + 1, Y - 1), strict=True):
        assert abs(result.raw_estimate.value - truth(y)) < 4 * result.raw_estimate.error < 0.1


def with_own_gradient(y):
    @jax.custom_vjp
    def value(m):
        return dist.Normal(m, 1.0).log_prob(y).sum()

    value.defvjp(lambda m: (value(m), m), lambda m, out: (out * jnp.sum(y - m),))
    return lambda p: value(p["m"])


def with_own_gradient_in_a_loop(y):
    @jax.custom_jvp
    def value(m):
        return dist.Normal(m, 1.0).log_prob(y).sum()

    value.defjvp(lambda at, moved: (value(at[0]), moved[0] * jnp.sum(y - at[0])))
    return lambda p: jax.lax.scan(lambda total, x: (total + value(p["m"] * x), None), 0.0, jnp.arange(3.0))[0]


@pytest.mark.parametrize("written", [with_own_gradient, with_own_gradient_in_a_loop])
def test_data_that_only_a_rule_for_gradients_holds_are_part_of_the_program(written, monkeypatch):
    with float64():
        first, again, second = (traced(written(y), AT) for y in (Y, Y, Y + 1))
        assert first.program == again.program != second.program
        both = [eqx.filter_jit(jax.value_and_grad(function))(AT) for function in (first, second, written(Y + 1))]
        assert float(both[1][0]) == pytest.approx(float(both[2][0]), abs=1e-12)
        assert float(both[1][1]["m"]) == pytest.approx(float(both[2][1]["m"]), abs=1e-12)
        # the twin: rules that nobody looks at
        monkeypatch.setattr(module, "_has_rules", lambda jaxpr: False)
        assert traced(written(Y), AT).program == traced(written(Y + 1), AT).program
        # rules of JAX's own hold no data
        monkeypatch.undo()
        own = [traced(lambda p, y=y: jnp.logaddexp(p["m"], y).sum(), AT) for y in (Y, Y + 1)]
        assert own[0].program == own[1].program
