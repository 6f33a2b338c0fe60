"""NumPyro models: every latent site becomes a prior, the observed sites the likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr
from numpyro.distributions import Distribution

from crossfade.bridges import sites
from crossfade.bridges.sites import Program
from crossfade.density.model import Model, describe
from crossfade.density.precision import in_float64
from crossfade.types import Array, CrossfadeError, Theta


class SitePrior(eqx.Module):
    """A site whose distribution the program makes of other parameters, or a fixed one with better words."""

    source: Program | Distribution
    name: str = eqx.field(static=True)  # in the program
    words: str = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Distribution:
        return self.source.distribution(self.name, theta) if isinstance(self.source, Program) else self.source

    def __str__(self) -> str:
        return self.words


class SiteLikelihood(eqx.Module):
    """The sum of the log densities of the observed sites, with their masks."""

    program: Program
    moving: tuple[str, ...] = eqx.field(static=True)  # sites whose support depends on the parameters

    def __call__(self, theta: Theta) -> Array:
        total = jnp.zeros(())
        for name, site in self.program.run(theta).items():
            if sites.is_observed(site):
                log_prob = sites.log_prob(site)
                if name in self.moving:  # outside, NumPyro's formulas give finite garbage
                    log_prob = jnp.where(sites.inside(site), log_prob, -jnp.inf)
                total += jnp.sum(log_prob)
        return total


@in_float64
def from_numpyro(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Model:
    """The model of a NumPyro function called with these arguments; sites keep their names.

    Call it again after anything the function reads has changed: arguments and data are those of now.
    """
    if not callable(model):
        raise CrossfadeError(f"from_numpyro needs a model function, not a {type(model).__name__}")
    program, theta, observed, dims = _read(model, args, kwargs)
    if not theta:
        raise CrossfadeError("the model has no latent site: give at least one parameter a prior with numpyro.sample")
    if not observed:
        raise CrossfadeError(
            f"the model has no observed site, only {', '.join(map(repr, theta))}: pass the data as they are passed "
            "to MCMC.run, and give them to numpyro.sample as obs="
        )
    parents = _parents(program, theta, observed)
    moving = tuple(name for name in observed if parents[name])
    priors, data = _constants(program, theta, observed, parents)
    return Model(priors, SiteLikelihood(program, moving), data=data, dims=dims)


def _read(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Program, Theta, tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The program, the shapes of its latent sites, the names of the observed ones and of the plates of each site.

    Nothing is computed. A model that needs the values of its arguments (for the number of groups, say) gets them as
    constants.
    """
    given, layout = jax.tree.flatten((args, kwargs))
    # float32 widens to the same numbers; nothing more is lost on the way
    leaves = [leaf.astype(float) if _is_data(leaf, "f") else leaf for leaf in given]
    arrays, rest = eqx.partition(leaves, _is_data)
    theta: Theta = {}
    observed: dict[str, None] = {}
    dims: dict[str, tuple[str, ...]] = {}

    def called(leaves: list[Any]) -> Any:
        own, named = jax.tree.unflatten(layout, leaves)
        return model(*own, **named)

    def look(program: Program) -> None:
        for name, site in program.run({}, visit=sites.check).items():
            if sites.is_observed(site):
                observed[name] = None
            elif site["type"] == "sample":
                theta[name] = jax.ShapeDtypeStruct(jnp.shape(site["value"]), float)
                plates = sorted(site["cond_indep_stack"], key=lambda plate: plate.dim)
                if plates and len(plates) == len(theta[name].shape):  # they are all of its dimensions
                    dims[name] = tuple(str(plate.name) for plate in plates)

    try:
        program = Program(jax.tree.map(jnp.asarray, arrays), lambda arrays: called(eqx.combine(arrays, rest)))
        jax.eval_shape(look, program)
    except jax.errors.JAXTypeError:
        program = Program([], lambda _: called(leaves))
        try:
            jax.eval_shape(look, program)
        except jax.errors.JAXTypeError as error:
            raise CrossfadeError(
                f"the model cannot be traced by JAX ({str(error).splitlines()[0]}): it must not branch on the values "
                "of its parameters or hand them to NumPy; use jax.numpy and jnp.where"
            ) from error
    return program, theta, tuple(observed), dims


def _is_data(leaf: Any, kinds: str = "fiub") -> bool:
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
    for i, name in enumerate(theta):
        if set(parents[name]) - set(list(theta)[:i]):
            raise CrossfadeError(
                f"{name!r} is drawn step by step (scan), each step given the last: write it as one distribution "
                "(GaussianRandomWalk, say), or scan over independent innovations"
            )
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
            layers = sites.layers(sites.whole(found[name]))
            words[name] = type(layers[-1]).__name__
            numpyros = all(type(layer).__module__.startswith("numpyro.") for layer in layers)
            if name in theta and not parents[name] and numpyros:
                fixed[name] = jax.tree.map(_plain, layers[0])
        seen = [found[name] for name in sorted(observed)]  # what two models must have in common, in one order
        return fixed, {s["name"]: (jnp.asarray(s["value"]), sites.kept(s), sites.inside(s)) for s in seen}

    fixed, responses = jax.jit(compute)(program)
    for name, (_, _, inside) in responses.items():
        if not parents[name] and not np.all(inside):  # no parameter can move the support there
            raise CrossfadeError(
                f"observed values of {name!r} are missing, or impossible under {words[name]}: drop or mask them, or "
                "choose another distribution"
            )
    priors: dict[str, Any] = {}
    for name in theta:
        if name in fixed:
            priors[name] = _prior(jax.tree.map(np.asarray, fixed[name]))
        else:
            given = f", given {', '.join(parents[name])}" if parents[name] else ""
            priors[name] = SitePrior(program, name, words[name] + given)
    data = [np.ravel(np.asarray(value, float)[np.asarray(kept)]) for value, kept, _ in responses.values()]
    return priors, np.concatenate(data)


def _prior(distribution: Distribution) -> Any:
    """The distribution itself, so that equal priors are equal; if a plate has wrapped it, with words of its own."""
    inner = sites.layers(distribution)[-1]
    if inner is distribution and distribution.arg_constraints:
        return distribution
    words = describe(inner) if inner.arg_constraints else type(inner).__name__
    shape = (*distribution.batch_shape, *distribution.event_shape)
    return SitePrior(distribution, "", f"{words} of shape {shape}" if shape else words)


def _plain(leaf: Any) -> Any:
    """Numbers as float64 arrays, whichever way they were written: Normal(0, 10) is Normal(0.0, 10.0)."""
    is_number = isinstance(leaf, int | float) and not isinstance(leaf, bool)
    return jnp.asarray(leaf, float) if is_number or jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf
