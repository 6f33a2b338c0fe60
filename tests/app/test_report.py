"""Reports: the numbers are the record's, nothing on the page is from elsewhere, and names are harmless."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas
import pytest
import stored
from stored import HOSTILE, curve, hostile
from typer.testing import CliRunner

import crossfade
from crossfade.app.cli import app
from crossfade.app.page import page
from crossfade.app.report import details, methods
from crossfade.app.report.bibliography import SOURCES
from crossfade.app.report.slider import positions
from crossfade.app.words import odds, with_error
from crossfade.many import Many
from crossfade.types import CrossfadeError, Estimate, Leg

VOID = {"meta", "input"}


class Read(HTMLParser):
    """Elements that are closed in the order in which they were opened, their attributes, and the words between."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words += f" {data}"

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.seen if tag == name]


def written(record, path, **more) -> tuple[str, Read]:
    record.report(path, **more)
    text = path.read_text(encoding="utf-8")
    return text, Read(text)


@pytest.fixture(scope="module")
def auto(tmp_path_factory) -> tuple[str, Read]:
    """The report of a run by chains, with a slider."""
    return written(stored.run("auto"), tmp_path_factory.mktemp("report") / "run.html", sensitivity=curve())


@pytest.mark.parametrize("name", ["auto", "mbar", "neti_diff"])
def test_a_report_says_what_the_page_says(name, auto, tmp_path):
    result = stored.run(name)
    text, found = auto if name == "auto" else written(result, tmp_path / "run.html")
    for own in page(result):
        cells = [cell for row in own.rows for cell in row.cells]
        for told in (own.title, own.note, *own.lines, *cells):
            assert told in found.words, told
    answer = result.log_bayes_factor
    assert with_error(answer) in found.words and odds(answer.value) in found.words
    for prior in ("InverseGamma(0.1, 0.1)", "Normal(0, variance / 1)"):
        assert prior in found.words
    assert all(line.strip() in found.words for line in result.cite().splitlines())
    assert len(found.tags("figure")) == {"auto": 6, "mbar": 5, "neti_diff": 4}[name]
    assert name == "auto" or [path.name for path in tmp_path.iterdir()] == ["run.html"]
    assert len(text) < 300_000


def test_priors_are_those_of_each_model():
    """Of a name that both have and do not share, and of two names that are shared as one."""
    auto = stored.run("auto")
    sharing = auto.sharing._replace(shared=("s = t",), only_1=("mu",), only_2=("mu", "b"), tempered=())
    priors = {"mu": "Normal(3, 10)", "s": "HalfNormal(1)", "t": "HalfNormal(2)", "b": "Normal(0, 1)"}
    about = {**auto.about, "priors": priors, "tempered_priors": {"mu": ("Normal(0, 1)", "Normal(3, 10)")}}
    said = {row.cells[0]: row.cells[1:] for row in details.priors(auto._replace(sharing=sharing, about=about)).rows}
    assert said == {
        "mu": ("Normal(0, 1)", "Normal(3, 10)"),
        "s": ("HalfNormal(1)", "-"),
        "t": ("-", "HalfNormal(2)"),
        "b": ("-", "Normal(0, 1)"),
    }


def test_a_report_takes_nothing_from_elsewhere_and_runs_one_script(auto):
    text, found = auto
    assert "http:" not in text and "https:" not in text and "@import" not in text
    assert not {tag for tag, _ in found.seen} & {"link", "img", "iframe", "object", "embed", "base"}
    assert all(not attributes.get("src") for _, attributes in found.seen)
    assert all(own.get("href", "#").startswith("#") for _, own in found.seen)
    (policy,) = [own["content"] for own in found.tags("meta") if own.get("http-equiv")]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert not any(name.startswith("on") for _, attributes in found.seen for name in attributes)
    ids = [own["id"] for _, own in found.seen if own.get("id")]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)


def test_the_slider_has_the_numbers_of_the_curve(auto):
    own, (text, found) = curve(), auto
    kept = re.search(r'id="positions">(.*?)</script>', text)
    assert kept is not None and json.loads(kept[1]) == positions(own)
    assert positions(own)[3] == "× 2, Normal(0, 2): log Bayes factor -1.50 ± 0.10, 95 % interval -1.70 to -1.30"
    assert positions(own)[4].endswith("(not reliable)")
    (slider,) = found.tags("input")
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "4", "2")
    assert "The answer changes sides at x 0.707: it depends on the prior of age." in found.words


def test_hostile_names_are_harmless(tmp_path):
    text, found = written(hostile(), tmp_path / "run.html", sensitivity=curve(HOSTILE))
    assert found.words.count("alert(1)") > 10
    assert len(found.tags("script")) == 2 and len(found.tags("style")) == 1
    assert text.count("alert(1)</script>") == 0 and text.count("<script>") == 1
    assert found.words.count(HOSTILE) > 5


def test_hostile_names_of_a_ranking_and_of_data_sets(tmp_path):
    ranking = stored.ranking()
    bad = ranking._replace(names=tuple(f"{HOSTILE}{i}" for i in range(6)), about={"data": HOSTILE}, closure=())
    _, found = written(bad, tmp_path / "ranking.html")
    assert len(found.tags("script")) == 1 and HOSTILE in found.words
    row = {"name": HOSTILE, "log_bayes_factor": 1.0, "error": 0.1, "verdict": "weak", "reason": HOSTILE}
    rows = (row, {**row, "name": HOSTILE * 2, "log_bayes_factor": None, "error": None, "verdict": "failed"})
    _, found = written(Many(rows), tmp_path / "many.html")
    assert len(found.tags("script")) == 1 and HOSTILE in found.words


def test_no_number_where_there_is_no_answer(tmp_path):
    run = stored.run("mbar")
    result = run._replace(verdict="do not use", reasons=("The chains of M1 disagree. Run them longer.",))
    text, found = written(result, tmp_path / "run.html")
    assert "The chains of M1 disagree. Run them longer." in found.words and "do not use" in found.words
    numbers = [run.raw_estimate, *run.opinions.values(), *run.checks.values(), *run.differences.values()]
    for own in numbers:
        assert f"{own.value:.2f}" not in found.words and with_error(own) not in text
    assert not found.tags("svg") and "±" not in found.words
    with pytest.raises(CrossfadeError, match="leave sensitivity= out"):
        result.report(tmp_path / "run.html", sensitivity=curve())
    ranking = stored.ranking()._replace(verdict="do not use", closure=())
    _, found = written(ranking, tmp_path / "ranking.html")
    assert not found.tags("svg") and not re.search(r"\d\.\d{2}", found.words.partition("Settings")[0])


def test_a_ranking_and_a_table(tmp_path):
    ranking = stored.ranking()
    _, found = written(ranking, tmp_path / "ranking.html")
    best = ranking.names[0]
    assert f"{ranking.probabilities[best].value:.3f}" in found.words and best in found.words
    assert len(found.tags("figure")) == 2 and "@article{shirts2008," in found.words
    random = np.random.default_rng(0)
    sets = {f"gene {i}": pandas.DataFrame(random.normal(size=(30, 3)), columns=["x", "y", "z"]) for i in range(25)}
    many = crossfade.compare_many("y ~ x", "y ~ x + z", sets, progress=False)
    _, found = written(many, tmp_path / "many.html")
    for row in many.rows:
        assert with_error(Estimate(row["log_bayes_factor"], row["error"], 1.0)) in found.words


def test_a_report_is_a_page_in_a_folder_that_exists(tmp_path):
    with pytest.raises(CrossfadeError, match=r"run.pdf: a report is a page: give a name that ends in .html"):
        stored.run("auto").report(tmp_path / "run.pdf")
    with pytest.raises(CrossfadeError, match="does not exist"):
        stored.run("auto").report(tmp_path / "nowhere" / "run.html")


# Sources ----------------------------------------------------------------------------------------------------------


def keys(text: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)


def test_sources_are_those_of_what_was_used():
    table = crossfade.data.load("radiata")
    assert keys(crossfade.compare(*crossfade.from_formulas(table, "y ~ x", "y ~ z")).cite()) == [
        "crossfade", "raiffa1961",
    ]  # fmt: skip
    yes = table.assign(y=(table["y"] > table["y"].median()).astype(int))
    sampled = crossfade.compare(*crossfade.from_formulas(yes, "y ~ x", "y ~ z", family="logistic"))
    assert keys(sampled.cite()) == ["crossfade", "kloek1978", "vehtari2024"]
    auto = keys(stored.run("auto").cite())
    assert auto == ["crossfade", "grzegorczyk2017", "shirts2008", "neal2011", "hoffman2021", "vehtari2021"]
    brought = stored.run("auto")
    brought = brought._replace(about={**brought.about, "brought": ["M1", "M2"]})
    assert keys(brought.cite()) == ["crossfade", "grzegorczyk2017", "shirts2008", "vehtari2021"]
    refined = stored.run("auto")._replace(raw_estimate=Estimate(6.8, 0.01, 9.0, "importance sampling"))
    assert keys(refined.cite()) == [*auto, "kloek1978", "vehtari2024"]
    assert keys(stored.run("neti_diff").cite()) == ["crossfade", "grzegorczyk2017", "gelfand1990"]
    assert keys(stored.run("mbar").cite()) == [
        "crossfade",
        "grzegorczyk2017",
        "shirts2008",
        "gelfand1990",
        "vehtari2021",
    ]
    assert "10.1007/s00180-017-0721-7" in stored.run("auto").cite()
    assert keys(stored.ranking().cite())[1:3] == ["grzegorczyk2017", "shirts2008"]


def test_every_estimator_and_every_source_is_known():
    from crossfade.analysis.estimators import ESTIMATORS

    assert set(ESTIMATORS) <= set(methods.ESTIMATORS)
    used = {key for _, sources in methods.ESTIMATORS.values() for key in sources}
    assert used <= set(SOURCES)
    for kind, fields in SOURCES.values():
        assert kind and fields["author"] and fields["title"]
        assert all(value.count("{") == value.count("}") for value in fields.values())


def test_tempering_is_told_and_cited():
    run = stored.run("mbar")
    legs = tuple(Leg(f"no data to M{k + 1}", sign, run.legs[0].forward, None) for k, sign in ((0, -1.0), (1, 1.0)))
    tempered = run._replace(legs=legs, about={"method": "auto", "path": "both evidences by parallel tempering"})
    assert keys(tempered.cite()) == ["crossfade", "syed2022", "shirts2008", "neal2011"]
    assert "parallel tempering" in " ".join(methods.of_result(tempered).sentences)


# The command ------------------------------------------------------------------------------------------------------


def test_the_command_reports_what_was_stored(tmp_path):
    run, ranking, table = tmp_path / "run.nc", tmp_path / "ranking.json", tmp_path / "table.csv"
    stored.run("neti_diff").save(run)
    stored.ranking().save(ranking)
    rows = [{"name": f"007-{i}", "log_bayes_factor": float(i), "error": 0.1, "probability": 0.5} for i in range(3)]
    rows += [{"name": "none", "log_bayes_factor": None, "error": None, "probability": None}]
    rest = {"verdict": "weak", "reason": "why", "seed": 1, "seconds": 0.1}
    Many(tuple(row | rest for row in rows)).save(table)
    for stored_file in (run, ranking, table):
        done = CliRunner().invoke(app, ["report", str(stored_file)])
        assert done.exit_code == 0 and str(stored_file.with_suffix(".html")) in done.stdout.replace("\n", "")
        again = CliRunner().invoke(app, ["report", str(stored_file)])  # perhaps a better one, with a curve
        assert again.exit_code == 2 and "is there already: name the page with --out" in " ".join(again.stderr.split())
        named = ["--out", str(stored_file.with_suffix(".html")), "--json"]
        said = json.loads(CliRunner().invoke(app, ["report", str(stored_file), *named]).stdout)
        assert said["kind"] == "report" and said["file"] == str(stored_file.with_suffix(".html"))
    page_of_table = Read(table.with_suffix(".html").read_text(encoding="utf-8"))
    assert "007-2" in page_of_table.words and "2.00 ± 0.10" in page_of_table.words and "nan" not in page_of_table.words
    stored.run("neti_diff")._replace(verdict="do not use").save(run)  # the code that says so, as everywhere
    assert CliRunner().invoke(app, ["report", str(run), "--out", str(tmp_path / "b.html")]).exit_code == 3


def test_the_command_says_what_it_cannot_report(tmp_path):
    for name, content, message in (
        ("none.nc", None, "there is no file"),
        ("other.csv", "a,b\n1,2\n", "has no column 'name'"),
        ("other.json", "{}", "is not a ranking"),
        ("other.nc", "text", "is not a crossfade run"),
    ):
        if content is not None:
            (tmp_path / name).write_text(content)
        done = CliRunner().invoke(app, ["report", str(tmp_path / name)])
        assert done.exit_code == 2 and message in " ".join(done.stderr.split())
