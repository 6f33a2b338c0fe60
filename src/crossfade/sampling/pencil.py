"""One decomposition that whitens the precision (1 - tau) A_1 + tau A_2 at every tau."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from crossfade.types import Array, CrossfadeError, Float


class Pencil(eqx.Module):
    """A_1 = (V V')^-1 and A_2 = (V diag(1/values) V')^-1, so that no rung needs a factorisation of its own."""

    vectors: np.ndarray  # V [p, p], or its diagonal [p] where parameters are many
    values: Float[np.ndarray, " p"]  # positive

    def weights(self, tau: Array) -> Array:
        """Eigenvalues of the precision in the basis V."""
        return (1 - tau) + tau * self.values

    def spread(self, tau: Array, z: Array) -> Array:
        """L z with L L' = precision^-1: standard normal z becomes a draw with that covariance."""
        whitened = z / jnp.sqrt(self.weights(tau))
        return self.vectors @ whitened if self.vectors.ndim == 2 else self.vectors * whitened

    def reversed(self) -> Pencil:
        """The same with A_1 and A_2 exchanged: for the way back."""
        return Pencil(self.vectors / np.sqrt(self.values), 1 / self.values)

    def log_det(self, tau: Array) -> Array:
        """log |(1 - tau) A_1 + tau A_2|."""
        return jnp.sum(jnp.log(self.weights(tau))) - 2 * jnp.linalg.slogdet(jnp.asarray(self.vectors))[1]


def pencil(root_1: np.ndarray, root_2: np.ndarray) -> Pencil:
    """From roots with A_k = root_k' root_k, by QR and one SVD: the normal equations are never formed."""
    size = np.sqrt(np.sum(root_1**2, axis=0) + np.sum(root_2**2, axis=0))  # columns of one size lose fewer digits
    r_1, r_2 = (np.linalg.qr(root / size)[1] for root in (root_1, root_2))
    _, singular, rotation = np.linalg.svd(np.linalg.solve(r_1.T, r_2.T).T)
    made = Pencil(np.linalg.solve(r_1, rotation.T) / size[:, None], singular**2)
    for root, values in ((root_1, np.ones_like(singular)), (root_2, singular**2)):
        whitened = root @ made.vectors / np.sqrt(values)
        if not np.abs(whitened.T @ whitened - np.eye(len(values))).max() < 1e-6:
            raise CrossfadeError(
                "the two designs are too badly scaled for double precision (columns of very different sizes that only "
                "one model has): standardise the covariates"
            )
    return made
