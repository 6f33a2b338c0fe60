"""Where the free variables of a PyMC model live, and a refusal of each whose density is not normalised there."""

from __future__ import annotations

from collections.abc import Collection
from math import lgamma, prod
from typing import Any, NamedTuple

import numpy as np
from numpyro.distributions import constraints
from numpyro.distributions.constraints import Constraint

from crossfade.bridges.packed import log_lkj_mass, packed_cholesky
from crossfade.types import CrossfadeError

IMPROPER = {"FlatRV", "HalfFlatRV", "ICARRV"}
# No density on a set with as many dimensions as entries, or none that the transform tells.
UNSUITED = {"WishartRV", "DiracDeltaRV", "_HurdleRV", "SimulatorRV"}
LUMPS = {"DiracDeltaRV", "_HurdleRV", "CensoredRV"}
TRUSTED = {"CustomDistRV", "CustomSymbolicDistRV"}
# The probability of an order is integrated along x = centre + scale sinh(u), or scale exp(u), for u between these.
U_ORDER = np.linspace(-25.0, 25.0, 8001)
LOST = 1e-6  # how much of a density this may miss
ROUNDING = 1e-5  # of PyMC's constants, some of them in single precision


class Support(NamedTuple):
    """The support of one variable, and what PyMC's density lacks there to be normalised."""

    constraint: Constraint
    note: str = ""
    log_constant: float = 0.0
    any_order: bool = False  # the density is that of all orders, n! times too small for one

    @property
    def ordered(self) -> bool:
        return self.constraint in (constraints.ordered_vector, constraints.positive_ordered_vector)

    def log_missing(self, shape: tuple[int, ...]) -> float:
        """To be added to PyMC's log density of a variable of this shape."""
        return self.log_constant + (prod(shape[:-1]) * lgamma(shape[-1] + 1) if self.any_order else 0.0)


def in_python() -> Any:
    """A mode in which PyTensor runs NumPy and calls no compiler: what is asked of it is small, and asked once."""
    from pytensor.compile.mode import Mode

    return Mode(linker="py", optimizer="fast_compile")


def of_variable(rv: Any, transform: Any, others: Collection[Any] = ()) -> Support:
    """The support of the distribution, which a transform of the user's must not narrow; `others` are the model's."""
    from pymc.distributions.transforms import Ordered, _default_transform

    kinds = {kind.__name__ for kind in type(rv.owner.op).__mro__}
    if not np.issubdtype(rv.dtype, np.floating):
        raise CrossfadeError(
            f"{rv.name!r} is discrete: sum it out of the likelihood (pm.Mixture does, for mixtures), so that only "
            "numbers are left"
        )
    if rv.dtype != "float64":
        raise CrossfadeError(f"{rv.name!r} is {rv.dtype}: build the model with pytensor.config.floatX = 'float64'")
    inner = set() if "_LKJCholeskyCovRV" in kinds else _inner_kinds(rv, others)  # whose sd_dist is looked at below
    if (kinds | inner) & IMPROPER:
        raise CrossfadeError(
            f"the prior of {rv.name!r} is improper, so the Bayes factor would be arbitrary: give it a proper one"
        )
    if kinds & UNSUITED:
        raise CrossfadeError(
            f"{rv.name!r} ({_kind(rv)}) has no density over unconstrained numbers here: write the model without it, "
            "or use from_log_joint"
        )
    if "CensoredRV" in kinds:
        raise CrossfadeError(
            f"{rv.name!r} is Censored and not observed, so it has lumps of probability at its bounds and no density: "
            "give it observed=, or clip a variable that is not censored"
        )
    if inner & LUMPS:
        raise CrossfadeError(
            f"the prior of {rv.name!r} has a lump of probability (a DiracDelta, or a bound of Censored) and no density "
            f"there: make two models, one with {rv.name!r} fixed there and one without the lump, and compare them"
        )
    if inner & UNSUITED:
        raise CrossfadeError(f"{rv.name!r} is made of a distribution that has no density here: write it without")
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
    return _lkj(rv) if natural == packed_cholesky else Support(natural)


def _inner_kinds(rv: Any, others: Collection[Any]) -> set[str]:
    """What a variable is made of: the parts of a mixture, the start of a walk."""
    from pytensor.graph.traversal import ancestors

    made_of = ancestors(rv.owner.inputs, blockers=others)
    ops = [variable.owner.op for variable in made_of if variable.owner and variable not in others]
    truncated = getattr(rv.owner.op, "base_rv_op", None)  # which is no input
    return {kind.__name__ for op in (*ops, truncated) for kind in type(op).__mro__}


def without_sum_check(log_densities: list[Any]) -> list[Any]:
    """Of free variables, without PyMC's check that they sum to 0: our coordinates see to it, up to rounding.

    The check allows 1e-9 whatever the scale, so that far out it would be rounding that decides.
    """
    from pymc.logprob.utils import CheckParameterValue
    from pytensor.graph.replace import graph_replace
    from pytensor.graph.traversal import io_toposort

    checks = {
        node.outputs[0]: node.inputs[0]
        for node in io_toposort([], log_densities)
        if isinstance(node.op, CheckParameterValue) and "zerosum" in node.op.msg
    }
    return graph_replace(log_densities, checks) if checks else log_densities


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
        t.CholeskyCovPacked: packed_cholesky,
    }
    if type(transform) in known:
        return known[type(transform)]
    if type(transform) in (t.Interval, lt.IntervalTransform):
        lower, upper = (_bound(rv, bound) for bound in transform.args_fn(*rv.owner.inputs))
        if lower is None or upper is None:
            open_ended = constraints.real if lower is None else constraints.greater_than(lower)
            return open_ended if upper is None else constraints.less_than(upper)
        return constraints.interval(lower, upper)
    if type(transform) is t.ZeroSumTransform and transform.zerosum_axes == tuple(range(-rv.owner.op.ndim_supp, 0)):
        return constraints.zero_sum(rv.owner.op.ndim_supp)
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


def _lkj(rv: Any) -> Support:
    """A covariance of LKJ correlations: PyMC 5.28 adds their log constant where it should be subtracted.

    What is missing is measured, at the identity, so that a PyMC that is right is left alone.
    """
    import pymc as pm
    from pymc.distributions.transforms import _default_transform
    from pymc.logprob.transforms import LogTransform
    from pytensor.tensor import get_underlying_scalar_constant_value
    from pytensor.tensor.exceptions import NotScalarConstantError

    _, n, eta, scales = rv.owner.inputs
    op = scales.owner.op
    kinds = {kind.__name__ for kind in type(op).__mro__}
    own = _default_transform(op, scales)
    if type(own) is not LogTransform or op.ndim_supp or kinds & (IMPROPER | TRUSTED):
        raise CrossfadeError(
            f"sd_dist of {rv.name!r} is {_kind(scales)}: give it a proper distribution on all positive numbers, as "
            "pm.HalfNormal.dist or pm.Exponential.dist are"
        )
    try:
        n, eta = (float(get_underlying_scalar_constant_value(value)) for value in (n, eta))
    except NotScalarConstantError:
        raise CrossfadeError(f"eta of {rv.name!r} is not a number: PyMC's density needs one, so fix it") from None
    n = int(n)
    alike = pm.LKJCholeskyCov.dist(eta=eta, n=n, sd_dist=pm.HalfNormal.dist(1.0), compute_corr=False)
    found = pm.logp(alike, np.eye(n)[np.tril_indices(n)]).eval(mode=in_python())
    log_scales = n * (np.log(2 / np.pi) - 1) / 2  # of n standard half-normals at 1
    missing = float(log_scales - log_lkj_mass(n, eta) - found)
    if abs(missing) < ROUNDING:
        return Support(packed_cholesky)
    note = f"the log density of {rv.name!r} is moved by {missing:.4f}, so that it is normalised: PyMC's is not"
    return Support(packed_cholesky, note, missing)


def _ordered(rv: Any, natural: Constraint, steps: list[Any]) -> Support:
    """Independent numbers, given that they are in order: n! if they are alike, else by the probability of it."""
    from pymc.pytensorf import rvs_in_graph
    from pytensor.tensor.random.op import RandomVariable

    op: Any = rv.owner.op
    last = steps[-1]
    positive = natural == constraints.positive
    whole = (positive or natural == constraints.real) and last.ascending and (positive or not last.positive)
    single = isinstance(op, RandomVariable) and op.ndim_supp == 0
    if not (single and whole and all(_known(rv, step) == natural for step in steps[:-1])):
        raise CrossfadeError(
            f"the prior of {rv.name!r} is not normalised on ordered vectors, unless its entries are independent, each "
            "on the real or the positive line, and ascending: write it so, or as increments that are positive"
        )
    constraint = constraints.positive_ordered_vector if positive else constraints.ordered_vector
    parameters = op.dist_params(rv.owner)
    if all((1, *parameter.type.shape)[-1] == 1 for parameter in parameters):
        note = f"the density of {rv.name!r} is multiplied by the number of orders, since PyMC's is that of all of them"
        return Support(constraint, note, any_order=True)
    if rvs_in_graph(parameters):
        raise CrossfadeError(
            f"the prior of {rv.name!r} is not normalised on ordered vectors: its entries have priors of their own that "
            "depend on other parameters; give all entries the same one, or fix them"
        )
    log_probability = _log_probability_of_order(rv, positive)
    note = (
        f"the density of {rv.name!r} is divided by the probability of its order, exp({log_probability:.4f}), since "
        "PyMC's is that of all orders"
    )
    return Support(constraint, note, -log_probability)


def _log_probability_of_order(rv: Any, positive: bool) -> float:
    """log P(x_1 < x_2 < ...), by integrating f_k(x) P(x_1 < ... < x_(k-1) < x) up to x for one k after the other."""
    import pymc as pm
    from scipy.integrate import cumulative_simpson

    draws = pm.draw(rv, draws=200, random_seed=0, mode=in_python())
    low, centre, high = np.quantile(draws, [0.25, 0.5, 0.75])
    scale = centre if positive else high - low
    x = scale * np.exp(U_ORDER) if positive else centre + scale * np.sinh(U_ORDER)
    slope = x if positive else scale * np.cosh(U_ORDER)
    points = x.reshape(-1, *(1,) * (draws.ndim - 1)) * np.ones(draws.shape[1:])
    with np.errstate(all="ignore"):  # far out, where only the total counts
        density = np.exp(pm.logp(rv, points).eval(mode=in_python())) * slope.reshape(-1, *(1,) * (draws.ndim - 1))
    step = U_ORDER[1] - U_ORDER[0]
    mass = cumulative_simpson(density, dx=step, axis=0)[-1]
    below: Any = 1.0
    for k in range(density.shape[-1]):
        below = cumulative_simpson(density[..., k] * below, dx=step, axis=0, initial=0.0)
    if not np.all(np.abs(mass - 1) < LOST) or not np.all(below[-1] > LOST):
        raise CrossfadeError(
            f"the probability that the entries of {rv.name!r} are in order could not be computed: their priors are too "
            "narrow, too far apart, or in the wrong order; give them priors that are more alike"
        )
    return float(np.sum(np.log(below[-1])))


def _kind(rv: Any) -> str:
    return type(rv.owner.op).__name__.strip("_").removesuffix("RV")
