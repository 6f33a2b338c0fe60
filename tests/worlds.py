"""Small pairs of models with exact answers, and keys, shared by the tests."""

from __future__ import annotations

import os

import jax
import numpy as np

from crossfade.density.model import Model
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.types import State
from crossfade.worlds.linear import models as linear

TAUS = (0.0, 0.3, 1.0)


def key(offset: int) -> jax.Array:
    """A fixed key per offset; CROSSFADE_TEST_SEED moves them all."""
    return jax.random.fold_in(jax.random.key(int(os.environ.get("CROSSFADE_TEST_SEED", "0"))), offset)


def nested(**kind) -> tuple[Model, Model]:
    """y = 1 + 0.5 a + noise; M1 has a, M2 has a and b (n = 30)."""
    random = np.random.default_rng(7)
    a, b = random.normal(size=(2, 30))
    y = 1 + 0.5 * a + 0.3 * b + random.normal(size=30)
    one = np.ones(30)
    return (
        linear.model(y, np.column_stack([one, a]), ("one", "a"), **kind),
        linear.model(y, np.column_stack([one, a, b]), ("one", "a", "b"), **kind),
    )


def crossed(**kind) -> tuple[Model, Model]:
    """Not nested, and the shared slope has another prior in M2, so it is tempered."""
    random = np.random.default_rng(8)
    a, b, c = random.normal(size=(3, 25))
    y = a + 0.4 * b + random.normal(size=25)
    return (
        linear.model(y, np.column_stack([a, b]), ("a", "b"), prior_precision=(1.0, 0.5), **kind),
        linear.model(y, np.column_stack([a, c]), ("a", "c"), prior_mean=(0.5, 0.0), prior_precision=2.0, **kind),
    )


KINDS = {
    "scaled": {"noise": linear.Noise(2.0, 1.5), "scaled": True},
    "unscaled": {"noise": linear.Noise(2.0, 1.5), "scaled": False},
    "known": {"noise": 0.8, "scaled": False},
}


def log_bayes_factor(pair: tuple[Model, Model]) -> float:
    return linear.log_evidence(pair[1]) - linear.log_evidence(pair[0])


def exact_draws(pair: tuple[Model, Model], tau: float, n: int, offset: int) -> State:
    """n independent draws of q_tau, from the closed form."""
    keys = chain_keys(key(offset), n)
    _, state = anneal(direct(*pair), linear.exact(*pair), np.array([tau]), keys, schedule=Schedule(1, 0, 0))
    return state
