"""The JAX side: models, paths, ladders, kernels and the one loop. Knows nothing of estimators."""
