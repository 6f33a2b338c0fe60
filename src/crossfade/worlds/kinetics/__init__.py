"""Gene regulation with Michaelis-Menten kinetics."""

from crossfade.worlds.kinetics.models import Hyper, gibbs, model, path

__all__ = ["Hyper", "gibbs", "model", "path"]
