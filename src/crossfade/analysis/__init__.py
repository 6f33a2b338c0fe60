"""From a trace to an estimate: NumPy and SciPy only, so that a stored run can be read anywhere."""
