"""What the manual and the README show works: every block runs, every link leads somewhere, every name is there."""

import re
from importlib import import_module

import numpy as np
import pytest
from manual import DOCS, PAGES, ROOT, blocks, run

import crossfade

# Pages that sample: their models are compiled first. The others take a second or two each.
SLOW = {
    "README.md",
    "tour.md",
    "numpyro.md",
    "pymc.md",
    "genes.md",
    "clusters.md",
    "models.md",
    "choosing.md",
    "scaling.md",
    "reporting.md",
}
LANGUAGES = {"python", "sh", "text", "json"}  # the first two are run, json is shown


def name_of(page):
    return str(page.relative_to(ROOT))


WITH_CODE = [page for page in PAGES if any(block.language in ("python", "sh") for block in blocks(page))]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page.name in SLOW), id=name_of(page)) for page in WITH_CODE],
)
def test_every_block_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_is_marked_as_what_it_is(page):
    """A block of another language would never be run; an indented command neither."""
    assert {block.language for block in blocks(page)} <= LANGUAGES
    assert not re.search(r"^    crossfade ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, part = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if part:
            assert part in anchors(found), target


def anchors(page):
    """As the manual's table of contents names them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    said = re.findall(r"\{ *#([\w-]+) *\}", page.read_text(encoding="utf-8"))
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in headings} | set(said)


def test_every_page_is_in_the_contents_once():
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_every_public_name_is_in_the_reference():
    shown = re.findall(r"^::: ([\w.]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    homes = {f"{home}.{name}" for name, home in crossfade._HOME.items()} | {"crossfade.data.load"}
    where = {getattr(crossfade, name).__module__ + "." + name for name in crossfade._HOME if name != "METHODS"}
    assert {own.rsplit(".", 1)[1] for own in homes} <= {own.rsplit(".", 1)[1] for own in shown}
    assert where <= set(shown)


def test_every_field_of_an_answer_is_in_the_reference():
    parts = re.split(r"^::: ", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    shown = {part.split()[0]: re.findall(r"^\| `(\w+)` \|", part, flags=re.MULTILINE) for part in parts}
    tables = {name: fields for name, fields in shown.items() if fields}
    assert len(tables) >= 6
    for name, fields in tables.items():
        module, _, noun = name.rpartition(".")
        assert fields == list(getattr(import_module(module), noun)._fields), name


def test_no_page_loads_anything_from_the_network():
    """The rest of a page is the theme's: `make docs` looks at what was built."""
    for page in [*PAGES, ROOT / "mkdocs.yml", *DOCS.glob("*.css")]:
        assert "://" not in page.read_text(encoding="utf-8").replace("tcp://", "").replace("s3://", ""), page


def script(name, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module(name)


def test_a_page_that_loads_from_the_network_is_found(tmp_path, monkeypatch):
    foreign = script("offline", monkeypatch).foreign
    (tmp_path / "index.html").write_text('<a href="https://a.b">x</a><img src="p.png"><link rel="icon" href="i.png">')
    assert foreign(tmp_path) == []
    for name, bad in {
        "a.html": '<script src="//a.b/c.js">',
        "b.html": '<link rel="stylesheet" href="https://a.b">',
    }.items():
        (tmp_path / name).write_text(bad)
    (tmp_path / "c.css").write_text("@font-face { src: url('https://a.b/f.woff') }")
    assert len(foreign(tmp_path)) == 3


@pytest.mark.parametrize("wrong", ["another line", "second\n    first", "third"])
def test_a_page_that_shows_what_is_not_printed_fails(wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    shown = '```python\nprint("first\\nsecond took 3.1 s")\n```\n\n```text title="prints"\n{}\n```\n'
    page.write_text(shown.format("first\n...\nsecond took 0.4 s"))
    run(page, tmp_path)
    page.write_text(shown.format(wrong))
    with pytest.raises(AssertionError, match="the page shows"):
        run(page, tmp_path)


@pytest.mark.parametrize("n, mean, sd", [(2, 0.7, 0.1), (50, 0.3, 1.0), (400, 0.1, 30.0)])
def test_the_pictures_of_priors_are_of_the_right_numbers(n, mean, sd, monkeypatch):
    """Against the ratio of two normal densities of the mean."""
    pytest.importorskip("matplotlib")
    found = script("lindley", monkeypatch).log_bayes_factor(n, mean, sd)
    spread = 1 + n * sd**2
    assert found == pytest.approx(-np.log(spread) / 2 + (n * mean * sd) ** 2 / (2 * spread), abs=1e-9)
