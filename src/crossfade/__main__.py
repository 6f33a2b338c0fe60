"""`python -m crossfade` is the command `crossfade`."""

from crossfade.app.cli import main

main()
