"""Gene regulation with Michaelis-Menten kinetics, and the circadian clock as such regressions."""

from crossfade.worlds.kinetics import clock
from crossfade.worlds.kinetics.models import Hyper, gibbs, model, path

__all__ = ["Hyper", "clock", "gibbs", "model", "path"]
