"""Reports in a real browser: no errors, no requests, the numbers of the record, reachable by hand, key and reader."""

import base64
import json
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import stored
from stored import HOSTILE, curve, hostile

from crossfade.app.report.slider import positions
from crossfade.app.words import odds, with_error
from crossfade.many import Many

pytestmark = pytest.mark.slow
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
]
PAGES = ("result", "hostile", "no answer", "ranking", "many")


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Any]:
    from selenium import webdriver

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.fail("These tests open reports in Chromium. Install Debian's packages chromium and chromium-driver.")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder, run = tmp_path_factory.mktemp("reports"), stored.run("auto")
    found = {name: folder / f"{name.replace(' ', '-')}.html" for name in PAGES}
    run.report(found["result"], sensitivity=curve())
    hostile().report(found["hostile"], sensitivity=curve(HOSTILE))
    run._replace(verdict="do not use", reasons=("Chains disagree.",)).report(found["no answer"])
    stored.ranking().report(found["ranking"])
    row = {"error": 0.1, "verdict": "weak", "reason": "", "probability": 0.5}
    Many(tuple({"name": f"gene {i}", "log_bayes_factor": i - 3.0, **row} for i in range(9))).report(found["many"])
    return found


def opened(browser: Any, page: Path) -> list[str]:
    """Opens a page and gives the addresses that it asked for."""
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # of the page before
    browser.get(page.as_uri())
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [own["params"]["request"]["url"] for own in events if own["method"] == "Network.requestWillBeSent"]


@pytest.mark.parametrize("name", PAGES)
def test_no_error_no_request_and_nothing_that_axe_finds(browser, pages, name):
    assert opened(browser, pages[name]) == [pages[name].as_uri()]
    browser.execute_script("for (const own of document.querySelectorAll('details')) own.open = true")
    browser.execute_script((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = browser.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then("
        "found => done(found.violations.map(own => [own.id, own.nodes.map(node => node.html + node.failureSummary)])))"
    )
    assert found == []
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.scripts.length") == (2 if name in ("result", "hostile") else 1)


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_is_wide_enough(browser, pages, name):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        opened(browser, pages[name])
        assert browser.execute_script("return innerWidth") == 390
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_numbers_are_those_of_the_result(browser, pages):
    opened(browser, pages["result"])
    answer = stored.run("auto").log_bayes_factor
    shown = [own.text for own in browser.find_elements("css selector", ".headline dd")]
    assert any(with_error(answer) in words for words in shown)
    assert any(words.startswith(f"{odds(answer.value)}, ") for words in shown)  # and how strong that is
    opened(browser, pages["no answer"])
    assert not browser.find_elements("css selector", ".headline, svg")


def test_the_slider_reacts(browser, pages):
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["result"])
    slider, words = browser.find_element("id", "scale"), positions(curve())
    assert browser.find_element("id", "at").text == words[2]
    for key, at in ((Keys.ARROW_RIGHT, 3), (Keys.ARROW_RIGHT, 4), (Keys.HOME, 0)):
        slider.send_keys(key)
        assert browser.find_element("id", "at").text == words[at] == slider.get_attribute("aria-valuetext")
        (dot,) = browser.find_elements("css selector", "#sensitivity .tip.here")
        assert dot.get_attribute("aria-label").startswith(words[at].split(":")[0])


def says(browser: Any, tip: Any) -> None:
    """The box says what this one has to say, in the next frame or the one after."""
    from selenium.webdriver.support.wait import WebDriverWait

    box = browser.find_element("id", "pointed")
    WebDriverWait(browser, 5).until(lambda _: box.text == tip.get_attribute("aria-label"))


def test_values_are_under_the_pointer_and_the_arrow_keys(browser, pages):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["result"])
    box = browser.find_element("id", "pointed")
    assert not box.is_displayed()
    dot = browser.find_elements("css selector", "#sensitivity .tip")[1]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", dot)
    ActionChains(browser).move_to_element(dot).perform()
    assert box.is_displayed() and box.text == dot.get_attribute("aria-label") and "0.50 ± 0.10" in box.text
    stretch = browser.find_elements("css selector", "figure:first-of-type svg .strip")[0]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", stretch)
    ActionChains(browser).move_to_element(stretch).perform()
    assert box.text == stretch.get_attribute("aria-label") and "% of draws of M1 and" in box.text
    tips = browser.find_elements("css selector", "figure:first-of-type svg .tip")
    browser.execute_script("arguments[0].focus()", tips[0])
    says(browser, tips[0])
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    says(browser, tips[1])
    tips[1].send_keys(Keys.ESCAPE)
    assert not box.is_displayed()


def test_it_prints_with_everything_unfolded(browser, pages):
    opened(browser, pages["result"])
    browser.execute_script(
        "window.unfolded = 0; addEventListener('beforeprint', () => {"
        "window.unfolded = document.querySelectorAll('details[open]').length})"
    )
    printed = base64.b64decode(browser.print_page())
    assert printed.startswith(b"%PDF") and len(printed) > 20_000
    assert browser.execute_script("return window.unfolded") == len(browser.find_elements("css selector", "details")) > 0
    assert not browser.find_elements("css selector", "details[open]")
