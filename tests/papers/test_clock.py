"""From the shipped counts to regressions: scale, rows, and who regulates whom."""

import numpy as np
import pytest

from crossfade.data import load
from crossfade.papers.clock import GENES, KNOCKED_OUT, MUTANT, WILDTYPE, response
from crossfade.types import CrossfadeError

KEYS = [("wildtype", 1), ("wildtype", 5), ("mutant", 2)]


@pytest.mark.parametrize(("network", "instance"), KEYS)
@pytest.mark.parametrize("gene", GENES)
def test_scale_over_all_rows(network, instance, gene):
    whole = response(network, instance, gene, drop_knocked_out=False)
    assert len(whole.y) == 143 and abs(whole.y.mean()) < 1e-12 and whole.y.std(ddof=1) == pytest.approx(1)
    for x in (whole.own, *whole.regulators.values()):
        assert len(x) == 143 and x.min() == 0 and x.std(ddof=1) == pytest.approx(1)
    assert set(whole.regulators) == {*GENES, "LightP"} - {gene}


@pytest.mark.parametrize(
    ("gene", "dropped"),
    [("GI", (0, 13)), ("LHY", (13, 26)), ("TOC1", (26, 39)), ("PRR7", (39, 52)), ("PRR9", (39, 52)), ("NI", (0, 0))],
)
def test_rows_of_a_knock_out_are_dropped_after_scaling(gene, dropped):
    whole, kept = response("mutant", 4, gene, drop_knocked_out=False), response("mutant", 4, gene)
    rows = np.delete(np.arange(143), np.arange(*dropped))
    assert np.array_equal(kept.y, whole.y[rows]) and np.array_equal(kept.own, whole.own[rows])
    assert all(np.array_equal(kept.regulators[name], x[rows]) for name, x in whole.regulators.items())
    assert len(kept.y) == (130 if gene in KNOCKED_OUT else 143)


def test_columns_are_those_of_the_table():
    table = load("circadian").query("network == 'mutant' and instance == 3")
    whole = response("mutant", 3, "Y", drop_knocked_out=False)
    for got, name in ((whole.y, "dY"), (whole.own, "Y"), (whole.regulators["LightP"], "LightP")):
        assert np.corrcoef(got, table[name])[0, 1] == pytest.approx(1)
    assert abs(np.corrcoef(whole.regulators["PRR7"], table["PRR9"])[0, 1]) < 0.9


def test_networks():
    assert sum(map(len, WILDTYPE.values())) == 20
    lost = {(gene, name) for gene in GENES for name in WILDTYPE[gene] if name not in MUTANT[gene]}
    assert lost == {("LHY", "PRR9"), ("LHY", "PRR7"), ("PRR7", "PRR9"), ("NI", "PRR7")}
    for gene in GENES:
        assert gene not in WILDTYPE[gene]
        assert MUTANT[gene].items() <= WILDTYPE[gene].items()


def test_signs_are_those_of_the_rates():
    """Transcription rises with the molecules of an activator and falls with those of an inhibitor."""
    from crossfade.papers.circadian.reactions import PARAMETERS, REACTIONS, SPECIES, SWITCHES, rates

    all_rates, start = rates(PARAMETERS | SWITCHES), np.full(len(SPECIES), 0.4)
    for gene in GENES:
        row = list(REACTIONS).index(f"{gene}_transcription")
        for name in (*GENES, "LightP"):
            more = start.copy()
            of_gene = [i for i, s in enumerate(SPECIES) if s in (f"{name}_p", f"{name}_pm")]
            more[of_gene if name != "LightP" else SPECIES.index("P")] += 0.1
            effect = np.sign(all_rates(more, 1.0)[row] - all_rates(start, 1.0)[row])
            assert effect == WILDTYPE[gene].get(name, 0), (gene, name)


def test_what_does_not_exist_is_named():
    for key in (("wild", 1, "GI"), ("mutant", 6, "GI"), ("mutant", 1, "ZTL")):
        with pytest.raises(CrossfadeError, match="choose a gene of GI, LHY"):
            response(*key)
