"""The experiments of the paper, one file per data set: run by `crossfade paper NAME`."""
