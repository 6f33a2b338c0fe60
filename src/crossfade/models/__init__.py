"""Model worlds, one per file: model, tempered kernel, and the exact evidence where there is one."""
