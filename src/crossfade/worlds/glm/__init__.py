"""Regressions with a link function: logistic, Poisson, and logistic with an effect per group."""

from crossfade.worlds.glm import logistic, mixed, poisson

__all__ = ["logistic", "mixed", "poisson"]
