"""What the tests of words share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysis.gaussian_path import GaussianPath

from crossfade.analysis.judge import Finding

NEAR = GaussianPath(m=0.5, s=0.9, log_c=0.7)


def says(findings: Sequence[Finding], expected: int, sentence: str) -> None:
    """One finding of this level with this sentence, which asks for something to be done."""
    assert [finding.level for finding in findings] == [expected], findings
    assert re.search(sentence, findings[0].text), findings
    assert findings[0].text.endswith("."), findings
