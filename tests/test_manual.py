"""What the manual and the README show works: every block runs, every link leads somewhere, every name is there."""

import re
from importlib import import_module

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
    assert not re.search(r"^    crossfade ", page.read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, part = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if part:
            assert part in anchors(found), target


def anchors(page):
    """As the manual's table of contents names them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    said = re.findall(r"\{ *#([\w-]+) *\}", page.read_text())
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in headings} | set(said)


def test_every_page_is_in_the_contents_once():
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_every_public_name_is_in_the_reference():
    shown = re.findall(r"^::: ([\w.]+)$", (DOCS / "api.md").read_text(), flags=re.MULTILINE)
    homes = {f"{home}.{name}" for name, home in crossfade._HOME.items()} | {"crossfade.data.load"}
    where = {getattr(crossfade, name).__module__ + "." + name for name in crossfade._HOME if name != "METHODS"}
    assert {own.rsplit(".", 1)[1] for own in homes} <= {own.rsplit(".", 1)[1] for own in shown}
    assert where <= set(shown)


def test_every_field_of_an_answer_is_in_the_reference():
    parts = re.split(r"^::: ", (DOCS / "api.md").read_text(), flags=re.MULTILINE)[1:]
    shown = {part.split()[0]: re.findall(r"^\| `(\w+)` \|", part, flags=re.MULTILINE) for part in parts}
    tables = {name: fields for name, fields in shown.items() if fields}
    assert len(tables) >= 6
    for name, fields in tables.items():
        module, _, noun = name.rpartition(".")
        assert fields == list(getattr(import_module(module), noun)._fields), name


def test_no_page_loads_anything_from_the_network():
    """The rest of a page is the theme's: `make docs` looks at what was built."""
    for page in [*PAGES, ROOT / "mkdocs.yml", *DOCS.glob("*.css")]:
        assert "://" not in page.read_text().replace("tcp://", ""), page
