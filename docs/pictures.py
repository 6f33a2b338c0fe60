"""Draws docs/pictures/*.png: every kind of picture, and the beginning of a report on a desktop and on a phone.

python docs/pictures.py [--reports-only]; the reports need Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import crossfade

HERE = Path(__file__).parent / "pictures"
FORMULAS = ("y ~ npreg + glu + bmi + ped", "y ~ npreg + glu + bmi + ped + age")
RANKED = ("y ~ glu", "y ~ glu + bmi", "y ~ glu + age", "y ~ glu + bmi + age", "y ~ bmi + age", "y ~ glu + ped + bmi")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


def women() -> tuple[Any, Any]:
    """Two logistic regressions by chains, and how the answer depends on a prior."""
    pair = crossfade.from_formulas(crossfade.data.load("pima"), *FORMULAS, family="logistic")
    result = crossfade.compare(*pair, route="path", target_se=0.01)
    about = {"M1": FORMULAS[0], "M2": FORMULAS[1], "data": "pima, 532 rows, logistic family"}
    result = result._replace(about={**result.about, **about})
    curve = crossfade.prior_sensitivity(*pair, result, "age", factors=2.0 ** np.arange(-7, 3))
    return result, curve


def draw(result: Any, curve: Any) -> None:
    for kind in ("ratios", "integrand", "convergence"):
        result.plot(kind, HERE / f"{kind}.png")
    curve.plot(HERE / "sensitivity.png")
    boards = crossfade.from_formulas(crossfade.data.load("radiata"), "y ~ x", "y ~ z")
    rungs = crossfade.compare(*boards, method="MBAR", n_iter=2000, n_chains=16)
    rungs.plot("opinions", HERE / "opinions.png")
    crossfade.compare(*boards).plot("differs", HERE / "differs.png")
    far().plot("overlap", HERE / "overlap.png")
    models = crossfade.from_many_formulas(crossfade.data.load("pima").head(150), *RANKED, family="logistic")
    ranking = crossfade.rank(models, route="path")
    for kind in ("network", "probabilities"):
        ranking.plot(kind, HERE / f"{kind}.png")


def far() -> Any:
    """Effects of 150 groups against none: their skewed posteriors need rungs before the models overlap."""
    import jax.numpy as jnp
    import numpyro.distributions as dist

    y = np.array([0, 0, 1, 0, 0, 2] * 25)

    def apart(theta: Any) -> Any:
        return dist.Poisson(jnp.exp(theta["level"] + theta["effect"])).log_prob(y).sum()

    def alike(theta: Any) -> Any:
        return dist.Poisson(jnp.exp(theta["level"])).log_prob(y).sum()

    level, effects = dist.Normal(0.0, 2.0), dist.Normal(0.0, 3.0).expand([len(y)]).to_event(1)
    m1 = crossfade.Model({"level": level}, alike, data=y)
    m2 = crossfade.Model({"level": level, "effect": effects}, apart, data=y)
    return crossfade.compare(m1, m2, target_se=0.05, route="path")


def shots(result: Any, curve: Any) -> None:
    """The report as it is seen; as many colours as a screenshot needs, so that the files stay small."""
    from PIL import Image
    from selenium import webdriver

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        result.report(page, sensitivity=curve)
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or "chromium"
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            for name, width, height in (("desktop", 1280, 2000), ("phone", 390, 1500)):
                size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": name == "phone"}
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                browser.get(page.as_uri())
                taken = browser.execute_cdp_cmd("Page.captureScreenshot", {})
                where = HERE / f"report-{name}.png"
                where.write_bytes(base64.b64decode(taken["data"]))
                Image.open(where).convert("RGB").quantize(128).save(where, optimize=True)
        finally:
            browser.quit()


def main(reports_only: bool) -> None:
    HERE.mkdir(exist_ok=True)
    result, curve = women()
    if not reports_only:
        draw(result, curve)
    shots(result, curve)
    for path in sorted(HERE.glob("*.png")):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports-only", action="store_true")
    main(parser.parse_args().reports_only)
