"""Keeping work: a run as a folder of chunks, which may be stopped, copied, joined, and gone on with."""
