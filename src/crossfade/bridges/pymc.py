"""PyMC models: their log prior and log likelihood as JAX functions of the parameters as the user wrote them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to

from crossfade.bridges import tails
from crossfade.bridges.factors import accepted, trust
from crossfade.bridges.jaxified import Jaxified, first_line
from crossfade.bridges.log_joint import Around
from crossfade.bridges.pymc_words import in_words, origin
from crossfade.bridges.scales import conditional_priors
from crossfade.bridges.supports import Support, in_python, of_variable, without_sum_check
from crossfade.density.joint import AnyOf, Joint, fixed
from crossfade.density.precision import float64
from crossfade.density.traced import traced
from crossfade.types import CrossfadeError

N_STARTS = 256


def from_pymc(model: Any, *, factors: str | None = None) -> Joint:
    """The joint of a PyMC model, with its data as they are now; free variables keep their names.

    PyMC's transforms only say where the parameters live: the density is that of the variables themselves.
    `factors="likelihood"` says that the model's pm.Potential terms are part of the likelihood (censored data, say).
    """
    pymc = _load()
    if not isinstance(model, pymc.Model):
        raise CrossfadeError(f"from_pymc needs a pymc.Model, not a {type(model).__name__}")
    _check(model, accepted(factors))
    from pytensor import config

    with float64(), config.change_flags(cxx=""):  # without a C compiler, which PyTensor would look for
        if not model.free_RVs:  # a point hypothesis
            return fixed(model.compile_logp()({}), _data(model))
        supports = {
            rv.name: of_variable(rv, model.rvs_to_transforms[rv], [own for own in model.basic_RVs if own is not rv])
            for rv in model.free_RVs
        }
        names = tuple(supports)
        inputs, terms = _log_densities(model)
        function = _jaxified(inputs, terms, model.check_bounds)
        start = _start(pymc, model, supports)
        shapes = {name: tuple(spec.shape) for name, spec in jax.eval_shape(start, jax.random.key(0)).items()}
        data = _data(model)
        theta = {name: jax.ShapeDtypeStruct(shape, float) for name, shape in shapes.items()}
        missing = [support.log_missing(shapes[name]) for name, support in supports.items()]
        n = len(names)
        log_prior = traced(Jaxified(function, names, tuple(range(n)), sum(missing)), theta)
        log_likelihood = traced(Jaxified(function, names, tuple(range(n, len(terms))), 0.0), theta)
        known = conditional_priors(model, inputs, partial(_jaxified, check_bounds=False))
        conditional = {
            name: traced(own, {parent: theta[parent] for parent in own.parents}) for name, own in known.items()
        }
    return Joint(
        {name: (shapes[name], supports[name].constraint) for name in names},
        start,
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data=data,
        title=model.name,
        notes=(
            *(support.note for support in supports.values() if support.note),
            *trust("the pm.Potential", tuple(potential.name for potential in model.potentials)),
        ),
        factors={name: Jaxified(function, names, (i,), missing[i]) for i, name in enumerate(names)},
        priors={rv.name: in_words(rv, model.free_RVs) for rv in model.free_RVs},
        origin=partial(origin, model=model, inputs=inputs, jaxified=partial(_jaxified, check_bounds=False)),
        conditional=conditional,
        dims={name: tuple(map(str, dims)) for name, dims in model.named_vars_to_dims.items() if name in supports},
        coords={str(dim): _labels(labels) for dim, labels in model.coords.items() if labels is not None},
    )


def _labels(labels: Any) -> list[Any]:
    """Numbers and texts as they are; anything else, such as dates, as text: they are stored with a result."""
    plain = (label.item() if isinstance(label, np.generic) else label for label in labels)
    return [label if isinstance(label, int | float | str) else str(label) for label in plain]


def _load() -> Any:
    """PyMC and PyTensor's JAX side, which flips JAX's switch to float64 when it is imported: it is put back.

    In a thread of its own, where the switch is seen without the contexts of the caller.
    """

    def load() -> Any:
        import pymc

        before = jax.config.read("jax_enable_x64")
        try:
            import pytensor.link.jax.dispatch  # noqa: F401
        finally:
            jax.config.update("jax_enable_x64", before)
        return pymc

    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(load).result()
    except ImportError as error:
        raise CrossfadeError(f"PyMC cannot be imported ({error}): pip install 'crossfade[pymc]'") from error


def _check(model: Any, factors: bool) -> None:
    """A refusal of what has no known normalisation, or does not show all data; `factors` may be there."""
    for potential in model.potentials:
        if not factors:
            raise CrossfadeError(
                f"{potential.name!r} is a pm.Potential, which has no known normalisation: if it is part of the "
                'likelihood, pass factors="likelihood" to from_pymc (that it is a normalised probability of data is '
                "then your word); else write it as a distribution, or use from_log_joint if you know that the joint "
                "is normalised"
            )
        if not _sees_data(model, potential):
            raise CrossfadeError(
                f"there are no data in the pm.Potential {potential.name!r}, so it looks like part of the prior, whose "
                "normalisation is not known: write it as a distribution, or, if it is part of the likelihood, give the "
                "data it reads as an array or as pm.Data"
            )
    for rv in [*model.free_RVs, *model.observed_RVs]:
        kinds = {kind.__name__ for kind in type(rv.owner.op).__mro__}
        if "MinibatchRandomVariable" in kinds:
            raise CrossfadeError(
                f"{rv.name!r} sees a minibatch (total_size): a Bayes factor needs all data, so leave it out"
            )
        if "PartialObservedRV" in kinds:
            raise CrossfadeError(
                f"{rv.name!r} has missing values: drop these rows, so that all models see the same data"
            )
    if not model.free_RVs and not model.observed_RVs:
        raise CrossfadeError("the model has neither a free variable nor data: give it both")
    if not (model.observed_RVs or model.potentials):
        only = ", ".join(repr(rv.name) for rv in model.free_RVs)
        raise CrossfadeError(f"the model has no observed variable, only {only}: give the data to one as observed=")


def _sees_data(model: Any, term: Any) -> bool:
    """Whether there is an array of numbers, pm.Data or an observed variable in it, besides the parameters."""
    from pytensor.compile import SharedVariable
    from pytensor.graph.basic import Constant
    from pytensor.graph.traversal import ancestors

    def holds_data(variable: Any) -> bool:
        array = isinstance(variable, Constant) and np.ndim(variable.data) > 0 and np.size(variable.data) > 1
        return array or isinstance(variable, SharedVariable) or variable in model.observed_RVs

    # What made the parameters is the prior, and is not looked at.
    return any(holds_data(variable) for variable in ancestors([term], blockers=model.free_RVs))


def _log_densities(model: Any) -> tuple[list[Any], list[Any]]:
    """The values of the free variables, and the terms of the log joint: their priors, then those of the data."""
    from pymc.logprob.basic import conditional_logp
    from pymc.pytensorf import rvs_in_graph
    from pytensor.graph.replace import graph_replace

    variables = [*model.free_RVs, *model.observed_RVs]
    inputs = [rv.type(rv.name) for rv in model.free_RVs]
    values = [*inputs, *(model.rvs_to_values[rv] for rv in model.observed_RVs)]
    wide = _widened([*variables, *model.potentials])
    by_variable = dict(zip(wide[: len(variables)], values, strict=True))
    found = conditional_logp(by_variable, warn_rvs=False)
    potentials: Any = graph_replace(wide[len(variables) :], by_variable, strict=False)
    priors = without_sum_check([found[value] for value in inputs])
    terms = [term.sum() for term in (*priors, *(found[value] for value in values[len(inputs) :]), *potentials)]
    if rvs_in_graph(terms):
        raise CrossfadeError(
            "the log density is random: the model sees a pm.Minibatch (give it all data) or uses a variable of another "
            "model (build all of it in one)"
        )
    return inputs, terms


def _widened(outputs: list[Any]) -> list[Any]:
    """The graph with nothing in single precision, where PyTensor takes the logarithm of the 10 in Normal(0, 10)."""
    from pytensor.graph.traversal import io_toposort
    from pytensor.tensor import cast
    from pytensor.tensor.elemwise import Elemwise

    wide: dict[Any, Any] = {}
    for node in io_toposort([], outputs):
        inputs = [wide.get(variable, variable) for variable in node.inputs]
        if isinstance(node.op, Elemwise) and any(out.type.dtype in ("float16", "float32") for out in node.outputs):
            inputs = [cast(variable, "float64") for variable in inputs]
        if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            try:
                made = node.clone_with_new_inputs(inputs, strict=False)
            except TypeError:  # an inner graph of fixed types
                pairs = zip(inputs, node.inputs, strict=True)
                kept = [new if old.type.is_super(new.type) else cast(new, old.type.dtype) for new, old in pairs]
                made = node.clone_with_new_inputs(kept)
            wide.update(zip(node.outputs, made.outputs, strict=True))
    return [wide.get(output, output) for output in outputs]


def _jaxified(inputs: list[Any], outputs: list[Any], check_bounds: bool) -> Callable[..., Any]:
    """The graphs as one JAX function; where a parameter is invalid it is -inf, as in PyMC."""
    from pytensor.compile import SharedVariable
    from pytensor.compile.mode import get_mode
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.replace import clone_replace
    from pytensor.graph.traversal import graph_inputs
    from pytensor.link.jax.dispatch import jax_funcify
    from pytensor.tensor import constant

    shared = [variable for variable in graph_inputs(outputs) if isinstance(variable, SharedVariable)]
    values: dict[Any, Any] = {variable: constant(variable.get_value()) for variable in shared}
    graph = FunctionGraph(inputs=inputs, outputs=clone_replace(_widened(outputs), replace=values), clone=True)
    at_bounds = "local_check_parameter_to_ninf_switch" if check_bounds else "local_remove_check_parameter"
    get_mode("JAX").including(at_bounds).optimizer.rewrite(graph)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Skipping .* as JAX tracing would remove it")
            with _tails():
                return jax_funcify(graph)
    except NotImplementedError as error:
        raise CrossfadeError(
            f"PyTensor cannot express this model in JAX ({error}): bring it with from_numpyro or from_numpy_log_joint"
        ) from error


@contextmanager
def _tails() -> Iterator[None]:
    """With our own functions in the tails of distributions, for the time of one conversion.

    PyTensor's have no erfcx without TensorFlow, and infinities in the branch of a switch that is not taken: these
    turn the gradient of the other one into NaN.
    """
    from pytensor.link.jax.dispatch import jax_funcify
    from pytensor.scalar.math import Erfc, Erfcx, Log1mexp

    ours = {Erfcx: tails.erfcx, Erfc: tails.erfc, Log1mexp: tails.log1mexp}
    before = {op: jax_funcify.dispatch(op) for op in ours}
    try:
        for op, function in ours.items():
            jax_funcify.register(op, lambda op, node=None, *, function=function, **_: function)
        yield
    finally:
        for op, old in before.items():
            jax_funcify.register(op, old)


def _start(pymc: Any, model: Any, supports: dict[str, Support]) -> Any:
    """Draws of the prior, or the surroundings of PyMC's initial point if a variable cannot be drawn."""
    transforms = {name: biject_to(support.constraint) for name, support in supports.items()}
    try:
        found = pymc.draw([model[name] for name in supports], draws=N_STARTS, random_seed=0, mode=in_python())
    except Exception:  # NumPy's of each distribution are many: of what cannot be drawn, or is too far out
        from pymc.model.transform.conditioning import remove_value_transforms

        try:
            point = remove_value_transforms(model).initial_point()
        except Exception as error:
            raise CrossfadeError(
                f"PyMC can neither draw from the prior nor find an initial point ({first_line(error)}): look at the "
                "parameters of the priors, or pass initval="
            ) from error
        centre = {name: transforms[name].inv(jnp.asarray(point[name], float)) for name in supports}
        return Around({name: jnp.where(jnp.isfinite(u), u, 0.0) for name, u in centre.items()}, transforms)
    draws, kept = {}, np.ones(N_STARTS, bool)
    for (name, support), values in zip(supports.items(), found, strict=True):
        draws[name] = np.sort(values, axis=-1) if support.ordered else np.asarray(values, float)
        # A draw may be rounded to the edge of the support, where no chain can start.
        u = np.asarray(transforms[name].inv(draws[name]))
        kept &= np.all(np.isfinite(u.reshape(N_STARTS, -1)), axis=1)
    if not kept.any():
        raise CrossfadeError("no draw of the prior is inside the support of all variables: narrow the priors")
    return AnyOf({name: values[kept] for name, values in draws.items()}, int(kept.sum()))


def _data(model: Any) -> np.ndarray | None:
    """All observed values, variables in the order of their names: what two models must have in common."""
    if not model.observed_RVs:
        return None
    observed = [model.rvs_to_values[rv] for rv in sorted(model.observed_RVs, key=lambda rv: rv.name)]
    return np.concatenate([np.ravel(np.asarray(value.eval(mode=in_python()), float)) for value in observed])
