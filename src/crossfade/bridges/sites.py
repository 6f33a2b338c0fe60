"""Sites of a NumPyro model: running it, what they say, and a refusal of each that a Bayes factor cannot use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from numpyro import distributions as dist
from numpyro import handlers
from numpyro.distributions import Distribution, biject_to

from crossfade.density.model import elementwise, feasible, forgets, inner, layers, within
from crossfade.density.rescale import covers
from crossfade.types import Array, CrossfadeError, Theta

Site = dict[str, Any]


class Program(eqx.Module):
    """The user's model with its arguments: arrays are data of the compiled program, the rest is part of it."""

    arrays: list[Array | None]  # None: another argument
    # Compared by identity: a compiled program is never served to another call's model.
    function: Callable[[Any], Any] = eqx.field(static=True)

    def run(self, theta: Theta, seed: Any = 0, visit: Callable[[Site], None] | None = None) -> dict[str, Site]:
        """All sites with theta in the place of the latent ones; those that theta lacks are drawn after a visit."""
        model = handlers.substitute(handlers.seed(self.function, seed), data=theta)
        # A visit is from outside of all handlers, where plates have done their work; its None hides nothing.
        return handlers.trace(handlers.block(model, hide_fn=visit) if visit else model).get_trace(self.arrays)

    def distribution(self, name: str, theta: Theta) -> Distribution:
        """The distribution of one site; nothing behind it is run."""

        def stop(site: Site) -> None:
            if site["type"] == "sample" and site["name"] == name:
                raise _Reached(site)

        try:
            self.run(theta, visit=stop)
        except _Reached as reached:
            return whole(reached.args[0])
        raise CrossfadeError(f"the model has no site {name!r} for some values of its parameters: give it one for all")


class _Reached(BaseException):
    """Not an Exception, so that a model which catches those does not catch this."""


def is_observed(site: Site) -> bool:
    return site["type"] == "sample" and bool(site["is_observed"])


def is_latent(site: Site) -> bool:
    return site["type"] == "sample" and not site["is_observed"]


def is_factor(site: Site) -> bool:
    return site["type"] == "sample" and isinstance(layers(site["fn"])[-1], dist.Unit)


def whole(site: Site) -> Distribution:
    """The site's distribution with the shape of its value."""
    shape = tuple(site["kwargs"].get("sample_shape", ()))
    return site["fn"].expand((*shape, *site["fn"].batch_shape)) if shape else site["fn"]


def kept(site: Site) -> Array:
    """Which entries of the value no mask takes out."""
    mask = jnp.ones((), bool)
    for layer in layers(site["fn"]):
        if isinstance(layer, dist.MaskedDistribution):
            own = jnp.asarray(layer._mask)
            mask &= own.reshape(own.shape + (1,) * layer.event_dim)
    return jnp.broadcast_to(mask, jnp.shape(site["value"]))


def inside(site: Site) -> Array:
    """Where the values that count are in the support; everywhere, if the support cannot tell."""
    value = jnp.asarray(site["value"])
    try:
        return within(site["fn"], jnp.where(kept(site), value, feasible(site["fn"], value)))
    except (NotImplementedError, ValueError):
        return jnp.ones((), bool)


def log_prob(site: Site) -> Array:
    """log p of the site's value."""
    return site["fn"].log_prob(site["value"])


def check(site: Site, factors: bool = False) -> None:
    """A refusal of what has no known normalisation, or is not there to be integrated over; `factors` may be there."""
    name, kind = site.get("name"), site["type"]
    if kind == "param":
        raise CrossfadeError(
            f"{name!r} is a numpyro.param, which is optimised and has no prior: make it a numpyro.sample, or a constant"
        )
    if kind == "plate" and site["args"][1] not in (None, site["args"][0]):
        raise CrossfadeError(
            f"plate {name!r} takes a subsample of the data: a Bayes factor needs all, so leave out subsample_size"
        )
    if kind != "sample":
        return
    inner = layers(site["fn"])[-1]
    if is_factor(site) and not factors:
        raise CrossfadeError(
            f"{name!r} is a numpyro.factor, which has no known normalisation: if it is part of the likelihood, pass "
            'factors="likelihood" to from_numpyro (that it is a normalised probability of data is then your word); '
            "else write it as a distribution, or use from_log_joint if you know that the joint is normalised"
        )
    if site["is_observed"]:
        _check_observed(site)
    else:
        _check_latent(site, inner)


def _check_latent(site: Site, own: Distribution) -> None:
    name = site["name"]
    if isinstance(own, dist.Delta):
        raise CrossfadeError(f"{name!r} is a Delta, which has no density: make it a numpyro.deterministic")
    if why := _unfit(name, own):  # before anything is asked of it
        raise CrossfadeError(why)
    support = site["fn"].support
    if support is None or support.is_discrete:
        raise CrossfadeError(
            f"{name!r} is discrete and not observed: pass it as data (obs=) if it is data, else sum it out of the "
            "likelihood (MixtureSameFamily does, for mixtures)"
        )
    if any(isinstance(layer, dist.MaskedDistribution) and layer._mask is not True for layer in layers(site["fn"])):
        raise CrossfadeError(
            f"{name!r} is masked but not observed, so part of it has no prior: mask observed sites only (instead of "
            "obs_mask, drop the missing rows or mask them with numpyro.handlers.mask)"
        )
    if site["scale"] is not None:
        raise CrossfadeError(f"the prior of {name!r} is scaled, so it is not normalised: take the scale away")
    if part := next((part for part in map(_uneven, inner(own)) if part is not None), None):
        raise CrossfadeError(
            f"{name!r} has {type(layers(part)[-1]).__name__} as a part, which does not live where {name!r} does, so it "
            "is not normalised: give all parts one support; a MixtureGeneral may be given support="
        )
    try:
        biject_to(support)
    except NotImplementedError:
        raise CrossfadeError(
            f"the support of {name!r} ({support}) has no map from unconstrained numbers: write {name!r} as a "
            "deterministic function of parameters that have one"
        ) from None


def _unfit(name: str, prior: Distribution) -> str:
    """Why such a prior has no normalised density, with a way out; or nothing."""
    for part in inner(prior):
        kind, own = type(part).__name__, type(part)
        if isinstance(part, dist.ImproperUniform):
            return f"the prior of {name!r} is improper, so the Bayes factor would be arbitrary: give it a proper one"
        if isinstance(part, dist.Delta):
            return (
                f"the prior of {name!r} has a lump of probability, a Delta, and no density there: make two models, "
                f"with {name!r} fixed there and without the lump, and compare them"
            )
        if kind.endswith("CensoredDistribution"):
            return (
                f"the prior of {name!r} is {kind}, which is a likelihood of censored data and no normalised density "
                "of a parameter: give it obs=, or use the distribution that is not censored"
            )
        fields = (*own.gather_pytree_data_fields(), *own.gather_pytree_aux_fields())
        if vars(part).get("_support") is not None and "_support" not in fields:
            return (
                f"NumPyro forgets the support of {name!r} ({kind}) when JAX compiles it: write it as a transform of "
                "another distribution (Levy(loc, scale) as InverseGamma(0.5, 0.5) under AffineTransform(loc, scale))"
            )
    return ""


def _uneven(whole: Distribution) -> Distribution | None:
    """A part of a mixture, or the start of a diffusion, of which some values are impossible and NumPyro forgets it."""
    if isinstance(whole, dist.MixtureGeneral):
        parts, told = whole.component_distributions, whole._support is not None
    elif isinstance(whole, dist.MixtureSameFamily):
        parts, told = [whole.component_distribution], False
    elif isinstance(whole, dist.EulerMaruyama):
        parts, told = [whole.init_dist], False
    elif isinstance(whole, dist.FoldedDistribution):
        return None if _holds(whole.base_dist.support, dist.constraints.real) else whole.base_dist
    else:
        return None
    for part in parts:
        even = _holds(whole.support, part.support) and (told or _holds(part.support, whole.support))
        if forgets(layers(part)[-1]) or not even:
            return part
    return None


def _holds(support: Any, other: Any) -> bool:
    """Whether a support holds all of another, as far as the bounds are known."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((support, other))):
        return True
    supports = [elementwise(own) for own in (support, other)]
    return (type(supports[0]) is type(supports[1]) and not jax.tree.leaves(supports)) or covers(*supports)


def _check_observed(site: Site) -> None:
    if site["scale"] is not None:
        raise CrossfadeError(
            f"the observed site {site['name']!r} is scaled, so its likelihood is no probability of the data and a "
            "Bayes factor has no meaning: take the scale away"
        )
    shape, value = jnp.shape(log_prob(site)), jnp.shape(site["value"])
    if is_factor(site) and shape != value[:-1]:
        raise CrossfadeError(
            f"the numpyro.factor {site['name']!r} has shape {value[:-1]} and is in plates of shape {shape}, so that "
            "it counts more than once: give it a number for every element, or take it out of the plates"
        )
    if shape != value[: len(value) - site["fn"].event_dim]:
        raise CrossfadeError(
            f"the values of {site['name']!r} have shape {value} and their log densities {shape}, so that values count "
            "more than once: give the distribution and obs= one shape"
        )
