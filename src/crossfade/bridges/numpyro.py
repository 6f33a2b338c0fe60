"""NumPyro models: every latent site becomes a prior, the observed sites the likelihood."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr
from numpyro import distributions as dist

from crossfade.bridges import sites
from crossfade.bridges.factors import accepted, check_factors, trust
from crossfade.bridges.sites import Program
from crossfade.density.joint import Joint, as_joint, fixed
from crossfade.density.model import Model, conditional, describe, layers, log_density, narrowed, total
from crossfade.density.precision import in_float64
from crossfade.density.series import Series
from crossfade.density.traced import Traced, traced
from crossfade.types import Array, CrossfadeError, Theta

# What JAX raises where a value is needed that it does not have yet.
NOT_TRACED = (jax.errors.JAXTypeError, jax.errors.NonConcreteBooleanIndexError)


class Found(NamedTuple):
    """What a first look at a model finds."""

    program: Program
    theta: Theta  # the shapes of the latent sites
    observed: tuple[str, ...]
    factors: tuple[str, ...]  # those of the observed sites that are no distributions
    dims: dict[str, tuple[str, ...]]  # the plates of each latent site, where they are all of its dimensions


@in_float64
def from_numpyro(model: Callable[..., Any], *args: Any, factors: str | None = None, **kwargs: Any) -> Model | Joint:
    """The model of a NumPyro function called with these arguments; sites keep their names.

    Call it again after anything the function reads has changed: arguments and data are those of now.
    `factors="likelihood"` says that the model's numpyro.factor terms are part of the likelihood (censored data, say).
    """
    if not callable(model):
        raise CrossfadeError(f"from_numpyro needs a model function, not a {type(model).__name__}")
    found, title = _opened(model, args, kwargs, factors), getattr(model, "__name__", "")
    if title == "<lambda>":
        return found
    return found._replace(title=title) if isinstance(found, Joint) else found.described(found.notes, title)


def _opened(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], factors: str | None
) -> Model | Joint:
    found = _read(model, args, kwargs, accepted(factors))
    program, theta, observed, _, dims = found
    if not theta and not observed:
        raise CrossfadeError("the model has neither a parameter nor data: give it both with numpyro.sample")
    if not theta:  # a point hypothesis: its evidence is its likelihood
        data = _constants(program, theta, observed, dict.fromkeys(observed, ()))[1]
        return fixed(_likelihood(program, ())({}), data)
    if not observed:
        raise CrossfadeError(
            f"the model has no observed site, only {', '.join(map(repr, theta))}: pass the data as they are passed "
            "to MCMC.run, and give them to numpyro.sample as obs="
        )
    if found.factors:
        check_factors(model, args, kwargs, found.factors)
    parents = _parents(program, theta, observed)
    priors, data = _constants(program, theta, observed, parents)
    likelihood = traced(_likelihood(program, tuple(name for name in observed if parents[name])), theta)
    notes = trust("the numpyro.factor", found.factors)
    responses = None if set(observed) == set(found.factors) else data
    if any(set(parents[name]) - set(list(theta)[:i]) for i, name in enumerate(theta)):
        whole = _step_by_step(found, likelihood, priors, responses, notes)
        return whole._replace(conditional=_conditional(theta, priors, parents))
    made = Model(priors, likelihood, data=responses, dims=dims)
    return as_joint(made)._replace(notes=notes) if notes else made


def _likelihood(program: Program, moving: tuple[str, ...]) -> Callable[[Theta], Array]:
    """The sum of the log densities of the observed sites, with their masks; `moving` have a support that moves."""

    def log_likelihood(theta: Theta) -> Array:
        total = jnp.zeros(())
        for name, site in program.run(theta).items():
            if sites.is_observed(site):
                log_prob = sites.log_prob(site)
                if name in moving:  # outside, NumPyro's formulas give finite garbage
                    log_prob = jnp.where(sites.inside(site), log_prob, -jnp.inf)
                total += jnp.sum(log_prob)
        return total

    return log_likelihood


def _step_by_step(
    found: Found, likelihood: Traced, priors: dict[str, Any], data: np.ndarray | None, notes: tuple[str, ...]
) -> Joint:
    """The joint of a model in which a site is drawn given its own last value (scan): its prior is known as a whole."""
    program, names = found.program, tuple(found.theta)

    def supports(program: Program, key: Array) -> dict[str, Any]:
        drawn = program.run({}, key)
        return {name: narrowed(sites.whole(drawn[name])).support for name in names}

    first, second = (jax.tree.map(np.asarray, jax.jit(supports)(program, jax.random.key(k))) for k in (0, 1))
    for name in names:
        if not eqx.tree_equal(first[name], second[name]):
            raise CrossfadeError(
                f"the support of {name!r} depends on other parameters: write it as a fixed interval times a bound"
            )

    def log_prior(theta: Theta) -> Array:
        drawn = program.run(theta)
        return total([log_density(sites.whole(drawn[name]), name, theta) for name in names])

    def start(key: Array) -> Theta:
        """The model is run, and its observed sites, whose values are given, tell it nothing."""
        drawn = program.run({}, key)
        return {name: jnp.asarray(drawn[name]["value"], float) for name in names}

    return Joint(
        {name: (tuple(found.theta[name].shape), first[name]) for name in names},
        traced(start, jax.random.key(0)),
        log_prior=traced(log_prior, found.theta),
        log_likelihood=likelihood,
        data=data,
        notes=notes,
        exact_start=True,
        priors={name: describe(priors[name]) for name in names},
        dims=found.dims,
    )


def _conditional(theta: Theta, priors: dict[str, Any], parents: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Priors given parameters before them, and the states of a scan that are normal given the last one, as series."""

    def series(name: str, rest: Theta) -> Series | None:
        # States of 0, 1, 0, 1, ... show what every other one adds to the mean of the next.
        own = layers(priors[name]({**rest, name: jnp.arange(theta[name].shape[0]) % 2.0}))[-1]
        if not isinstance(own, dist.Normal):
            return None
        loc = jnp.broadcast_to(own.loc, theta[name].shape)
        shift = jnp.mean(loc[1::2])
        return Series(loc[0], None, shift, jnp.mean(loc[2::2]) - shift, jnp.exp(jnp.mean(jnp.log(own.scale))))

    found: dict[str, Any] = {}
    for i, name in enumerate(theta):
        rest, shape = {other: theta[other] for other in parents[name] if other != name}, theta[name].shape
        if not set(rest) <= set(list(theta)[:i]):
            continue
        if name not in parents[name]:
            found.update({name: priors[name]} if rest else {})
        elif len(shape) == 1 and shape[0] > 2 and jax.eval_shape(partial(series, name), rest) is not None:
            found[name] = traced(partial(series, name), rest)
    return found


def _read(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], factors: bool) -> Found:
    """The program and the names of its sites.

    Nothing is computed. A model that needs the values of its arguments (for the number of groups, say) gets its whole
    numbers as constants, and if it needs more, all.
    """
    given, layout = jax.tree.flatten((args, kwargs))
    # float32 widens to the same numbers; nothing more is lost on the way
    leaves = [leaf.astype(float) if _is_data(leaf, "f") else leaf for leaf in given]
    theta: Theta = {}
    observed: dict[str, bool] = {}  # and whether it is a factor
    dims: dict[str, tuple[str, ...]] = {}

    def called(rest: list[Any], arrays: list[Any]) -> Any:
        own, named = jax.tree.unflatten(layout, eqx.combine(arrays, rest))
        return model(*own, **named)

    def look(program: Program) -> None:
        for name, site in program.run({}, visit=lambda site: sites.check(site, factors)).items():
            if sites.is_observed(site):
                observed[name] = sites.is_factor(site)
            elif sites.is_latent(site):
                theta[name] = jax.ShapeDtypeStruct(jnp.shape(site["value"]), float)
                plates = sorted(site["cond_indep_stack"], key=lambda plate: plate.dim)
                if plates and len(plates) == len(theta[name].shape):  # they are all of its dimensions
                    dims[name] = tuple(str(plate.name) for plate in plates)

    for kinds in ("fiub", "f", ""):
        arrays, rest = eqx.partition(leaves, partial(_is_data, kinds=kinds))
        program = Program(jax.tree.map(jnp.asarray, arrays), partial(called, rest))
        try:
            jax.eval_shape(look, program)
            break
        except NOT_TRACED as error:
            if not kinds:
                raise CrossfadeError(
                    f"the model cannot be traced by JAX ({str(error).splitlines()[0]}): it must not branch on the "
                    "values of its parameters or hand them to NumPy; use jax.numpy and jnp.where"
                ) from error
    return Found(program, theta, tuple(observed), tuple(name for name in observed if observed[name]), dims)


def _is_data(leaf: Any, kinds: str) -> bool:
    return isinstance(leaf, np.ndarray | jax.Array) and leaf.dtype.kind in kinds


def _parents(program: Program, theta: Theta, observed: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Which parameters each latent site's density and each observed site's support depend on, read off the jaxpr."""

    def probe(key: Array, given: Theta, values: Theta) -> list[Array]:
        found = program.run(given, key)
        return [
            *(sites.whole(found[name]).log_prob(values[name]) for name in theta),
            *(sites.inside(found[name]) for name in observed),
            sum(jnp.sum(sites.log_prob(found[name])) for name in observed),
        ]

    jaxpr = jax.make_jaxpr(probe)(jax.random.key(0), theta, theta).jaxpr
    parents: dict[str, tuple[str, ...]] = {}
    for i, name in enumerate([*theta, *observed, ""]):
        _, used = dce_jaxpr(jaxpr, [k == i for k in range(len(jaxpr.outvars))])
        if used[0]:
            raise CrossfadeError(
                "the model draws random numbers that are no sites of it (prng_key, or a site that is blocked): make "
                "them sites, or pass them as data"
            )
        by_name = dict(zip(sorted(theta), used[1:], strict=False))
        parents[name] = tuple(other for other in theta if by_name[other])
    return parents


def _constants(
    program: Program, theta: Theta, observed: tuple[str, ...], parents: dict[str, tuple[str, ...]]
) -> tuple[dict[str, Any], np.ndarray]:
    """The priors, and the responses: all that does not depend on the parameters is computed once, here."""
    words: dict[str, str] = {}

    def compute(program: Program) -> Any:
        found = program.run({name: jnp.ones(spec.shape) for name, spec in theta.items()})
        fixed = {}
        for name in (*theta, *observed):
            own = layers(sites.whole(found[name]))
            words[name] = type(own[-1]).__name__
            numpyros = all(type(layer).__module__.startswith("numpyro.") for layer in own)
            if name in theta and not parents[name] and numpyros:
                fixed[name] = jax.tree.map(_plain, own[0])
        seen = [found[name] for name in sorted(observed)]  # what two models must have in common, in one order
        return fixed, {s["name"]: (jnp.asarray(s["value"]), sites.kept(s), sites.inside(s)) for s in seen}

    fixed, responses = _computed(traced(partial(compute, program)))
    for name, (_, _, inside) in responses.items():
        if not parents[name] and not np.all(inside):  # no parameter can move the support there
            raise CrossfadeError(
                f"observed values of {name!r} are missing, or impossible under {words[name]}: drop or mask them, or "
                "choose another distribution"
            )
    priors: dict[str, Any] = {}
    for name in theta:
        if name in fixed:
            priors[name] = jax.tree.map(np.asarray, fixed[name])
        else:
            given = {parent: theta[parent] for parent in parents[name]}
            said = f"{words[name]}, given {', '.join(given)}" if given else words[name]
            priors[name] = conditional(partial(program.distribution, name), given, said)
    data = [np.ravel(np.asarray(value, float)[np.asarray(kept)]) for value, kept, _ in responses.values()]
    return priors, np.concatenate(data)


@eqx.filter_jit
def _computed(own: Traced) -> Any:
    """Compiled once for models that differ in their data alone."""
    return own()


def _plain(leaf: Any) -> Any:
    """Numbers as float64 arrays, whichever way they were written: Normal(0, 10) is Normal(0.0, 10.0)."""
    is_number = isinstance(leaf, int | float) and not isinstance(leaf, bool)
    return jnp.asarray(leaf, float) if is_number or jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf
