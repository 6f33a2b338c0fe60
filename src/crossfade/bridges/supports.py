"""Where the free variables of a PyMC model live, and a refusal of each whose density is not normalised there."""

from __future__ import annotations

from math import lgamma, prod
from typing import Any, NamedTuple

import numpy as np
from numpyro.distributions import constraints
from numpyro.distributions.constraints import Constraint

from crossfade.types import CrossfadeError

IMPROPER = {"FlatRV", "HalfFlatRV", "ICARRV"}
# No density on a set with as many dimensions as entries, or none that the transform tells.
UNSUITED = {"WishartRV", "CensoredRV", "DiracDeltaRV", "_HurdleRV", "SimulatorRV"}
TRUSTED = {"CustomDistRV", "CustomSymbolicDistRV"}


class Support(NamedTuple):
    """The support of one variable; `ordered`: PyMC's density is that of all orders, n! times too small for one."""

    constraint: Constraint
    ordered: bool = False
    note: str = ""

    def log_missing(self, shape: tuple[int, ...]) -> float:
        """The log of what PyMC's density lacks to be normalised on the ordered vectors."""
        return prod(shape[:-1]) * lgamma(shape[-1] + 1) if self.ordered else 0.0


def in_python() -> Any:
    """A mode in which PyTensor runs NumPy and calls no compiler: what is asked of it is small, and asked once."""
    from pytensor.compile.mode import Mode

    return Mode(linker="py", optimizer="fast_compile")


def of_variable(rv: Any, transform: Any) -> Support:
    """The support of the distribution, which a transform of the user's must not narrow."""
    from pymc.distributions.transforms import Ordered, _default_transform

    kinds = {kind.__name__ for kind in type(rv.owner.op).__mro__}
    if not np.issubdtype(rv.dtype, np.floating):
        raise CrossfadeError(
            f"{rv.name!r} is discrete: sum it out of the likelihood (pm.Mixture does, for mixtures), so that only "
            "numbers are left"
        )
    if rv.dtype != "float64":
        raise CrossfadeError(f"{rv.name!r} is {rv.dtype}: build the model with pytensor.config.floatX = 'float64'")
    if kinds & IMPROPER:
        raise CrossfadeError(
            f"the prior of {rv.name!r} is improper, so the Bayes factor would be arbitrary: give it a proper one"
        )
    if kinds & UNSUITED:
        raise CrossfadeError(
            f"{rv.name!r} ({_kind(rv)}) has no density over unconstrained numbers here: write the model without it, "
            "or use from_log_joint"
        )
    steps = getattr(transform, "transform_list", [transform])
    if kinds & TRUSTED:
        note = f"that the density of {rv.name!r} is normalised is taken on trust: it is the user's own"
        return Support(_known(rv, steps[0]) if len(steps) == 1 else _refuse(rv), note=note)
    natural = _known(rv, _default_transform(rv.owner.op, rv))
    if any(isinstance(step, Ordered) for step in steps):
        return _ordered(rv, natural, steps)
    for step in steps:
        if step is not None and _known(rv, step) != natural:
            raise CrossfadeError(
                f"the transform of {rv.name!r} confines it to a part of where {_kind(rv)} lives, and its prior is not "
                "normalised there: use pm.Truncated or another distribution that is"
            )
    return Support(natural)


def _known(rv: Any, transform: Any) -> Constraint:
    """The image of a transform of PyMC's; subclasses are other transforms."""
    from pymc.distributions import transforms as t
    from pymc.logprob import transforms as lt

    known = {
        type(None): constraints.real,
        lt.LogTransform: constraints.positive,
        t.LogExpM1: constraints.positive,
        lt.LogOddsTransform: constraints.unit_interval,
        lt.SimplexTransform: constraints.simplex,
        lt.CircularTransform: constraints.interval(-np.pi, np.pi),
    }
    if type(transform) in known:
        return known[type(transform)]
    if type(transform) in (t.Interval, lt.IntervalTransform):
        lower, upper = (_bound(rv, bound) for bound in transform.args_fn(*rv.owner.inputs))
        if lower is None or upper is None:
            open_ended = constraints.real if lower is None else constraints.greater_than(lower)
            return open_ended if upper is None else constraints.less_than(upper)
        return constraints.interval(lower, upper)
    return _refuse(rv)


def _refuse(rv: Any) -> Any:
    raise CrossfadeError(
        f"{rv.name!r} ({_kind(rv)}) has a support that this bridge cannot map: write it as a deterministic function "
        "of parameters that have one, or use from_numpyro or from_log_joint"
    )


def _bound(rv: Any, bound: Any) -> Any:
    """A bound as a number, or as an array if it is not the same for all entries; None at infinity."""
    from pymc.pytensorf import rvs_in_graph
    from pytensor.tensor import as_tensor_variable

    if bound is None:
        return None
    bound = as_tensor_variable(bound)
    if rvs_in_graph(bound):
        raise CrossfadeError(
            f"the support of {rv.name!r} depends on other parameters: write it as a fixed interval times a bound"
        )
    values = np.asarray(bound.eval(mode=in_python()), float)
    if np.all(np.isinf(values)):
        return None
    if np.any(np.isinf(values)):
        raise CrossfadeError(f"some entries of {rv.name!r} have a bound and some have none: make them two variables")
    return float(values.flat[0]) if np.all(values == values.flat[0]) else values


def _ordered(rv: Any, natural: Constraint, steps: list[Any]) -> Support:
    """Order statistics: known to be normalised, up to n!, only if all entries have one and the same prior."""
    from pytensor.tensor.random.op import RandomVariable

    op: Any = rv.owner.op
    last = steps[-1]
    one_prior = (
        isinstance(op, RandomVariable)
        and op.ndim_supp == 0
        and all((1, *parameter.type.shape)[-1] == 1 for parameter in op.dist_params(rv.owner))
    )
    positive = natural == constraints.positive
    whole = (positive or natural == constraints.real) and last.ascending and (positive or not last.positive)
    if not (one_prior and whole and all(_known(rv, step) == natural for step in steps[:-1])):
        raise CrossfadeError(
            f"the prior of {rv.name!r} is not normalised on ordered vectors, unless all its entries have the same "
            "prior on the real or the positive line: give them one, or write increments that are positive"
        )
    n_orders = f"the density of {rv.name!r} is multiplied by the number of orders, since PyMC's is that of all of them"
    constraint = constraints.positive_ordered_vector if positive else constraints.ordered_vector
    return Support(constraint, ordered=True, note=n_orders)


def _kind(rv: Any) -> str:
    return type(rv.owner.op).__name__.strip("_").removesuffix("RV")
