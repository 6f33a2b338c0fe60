"""Linear regression, whose evidences and tempered posteriors are known exactly."""

from crossfade.worlds.linear.models import Noise, Pair, exact, gibbs, log_evidence, model, pair, radiata, radiocarbon

__all__ = ["Noise", "Pair", "exact", "gibbs", "log_evidence", "model", "pair", "radiata", "radiocarbon"]
