"""Compilation ahead of time: the programs of several models are compiled at once, and found when they are called.

Only compilers work side by side. Compiled programs do not: two that use LAPACK wait for each other for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.sampling import evaluate, hmc, starts
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.clock import look_at_clock, side_by_side
from crossfade.sampling.frame import frame_of

Program = tuple[Any, tuple[Any, ...]]  # a compiled function, and what it will be called with


def compile_all(joints: list[Joint], programs: Callable[[Joint], list[Program]]) -> None:
    """The programs of all models, one thread for each model."""
    side_by_side([partial(_compile, joint, programs) for joint in joints])


@in_float64
def _compile(joint: Joint, programs: Callable[[Joint], list[Program]]) -> None:
    for function, args in programs(joint):
        look_at_clock()
        function.lower(*args).compile()


def for_starts(joint: Joint) -> list[Program]:
    """What the search for starts runs."""
    keys = chain_keys(jax.random.key(0), starts.N_CANDIDATES)
    u = np.zeros((starts.N_CANDIDATES, joint.coordinates.size))
    found = [
        (starts._drawn, (joint.coordinates, joint.start, keys)),
        (evaluate._values_and_slopes, (joint.density, u[: evaluate.PIECE])),
    ]
    if joint.separable and joint.exact_start:
        found.append((starts._at_theta, (joint.log_likelihood, joint.coordinates, u)))
    return found


def for_draws(joint: Joint, n_chains: int) -> list[Program]:
    """What chains run, and whoever reads their draws."""
    size = joint.coordinates.size
    keys = chain_keys(jax.random.key(0), n_chains)
    chains = hmc.begin(joint.density, np.zeros((n_chains, size)), np.ones(size), keys, frame_of(joint), joint.jumps)
    return [
        (hmc._segment, hmc.segment_of(chains)),
        (evaluate._values, (joint.density, np.zeros((evaluate.CHUNK, size)))),
    ]
