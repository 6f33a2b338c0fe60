"""The clock without noise: the table of reactions, the published figures, COPASI beside SciPy."""

from functools import cache

import numpy as np
import pytest
from assertions import rng

from crossfade.papers.circadian import ode
from crossfade.papers.circadian.design import CONDITIONS, NETWORKS, TIMES, Condition, light, numbers
from crossfade.papers.circadian.reactions import (
    CHANGES,
    GENES,
    PARAMETERS,
    PUBLISHED_START,
    REACTIONS,
    SPECIES,
    SWITCHES,
    rates,
)
from crossfade.papers.circadian.simulate import OMEGA, build, start_counts


def hill(x, k, h):
    return x**h / (x**h + k**h)


def published_drift(x, light, p):
    """The 19 equations as they are published, with net fluxes: written apart from the table of reactions."""
    s, dark = dict(zip(SPECIES, x, strict=True)), 1 - light
    lhy, toc1, prr9, prr7, ni = (s[f"{g}_p"] for g in ("LHY", "TOC1", "PRR9", "PRR7", "NI"))
    acute = light * s["P"]
    modified = p["p3"] * hill(lhy, p["g3"], 3)
    bound = p["p12"] * light * s["ZTL"] * s["GI_p"] - p["p13"] * dark * s["GI_ZTL"]
    by_ztl = (p["m6"] * light + p["m7"] * dark) * (p["p5"] * s["ZTL"] + s["GI_ZTL"])
    off = {
        "LHY_5": 1 - hill(lhy, p["g5"], 2),
        "LHY_16": 1 - hill(lhy, p["g16"], 2),
        "LHY_15": 1 - hill(lhy, p["g15"], 2),
    }
    off |= {"T_7": 1 - hill(toc1, p["g7"], 3), "T_8": 1 - hill(toc1, p["g8"], 2), "T_14": 1 - hill(toc1, p["g14"], 1)}
    return {
        "LHY_m": (p["q1"] * acute + p["n0"] * light + p["n1"] * hill(s["TOC1_pm"], p["g2"], 3))
        * (1 - hill(prr9 + prr7 + ni, p["g1"], 2))
        - s["LHY_m"] * (p["m1"] * light + p["m2"] * dark),
        "LHY_p": (p["p2"] * dark + p["p1"] * light) * s["LHY_m"] - p["m3"] * lhy - modified,
        "LHY_pm": modified - p["m4"] * s["LHY_pm"],
        "TOC1_m": (p["n3"] + p["n2"] * hill(s["Y_p"], p["g4"], 2.5)) * off["LHY_5"] - p["m5"] * s["TOC1_m"],
        "TOC1_p": p["p4"] * s["TOC1_m"] - toc1 * (p["m8"] + by_ztl),
        "TOC1_pm": p["p15"] * hill(toc1, p["g6"], 3) - (p["m25"] * light + p["m26"] * dark) * s["TOC1_pm"],
        "Y_m": p["q2"] * acute + (p["n5"] * light + p["n6"] * dark) * off["T_7"] * off["LHY_16"] - p["m9"] * s["Y_m"],
        "Y_p": p["p6"] * s["Y_m"] - p["m10"] * s["Y_p"],
        "P": p["p7"] * dark * (1 - s["P"]) - p["m11"] * acute,
        "PRR9_m": p["q3"] * acute
        + (p["n4"] * light + p["n7"] * hill(lhy, p["g9"], 3)) * off["T_8"]
        - p["m12"] * s["PRR9_m"],
        "PRR9_p": p["p8"] * s["PRR9_m"] - (p["m13"] * light + p["m22"] * dark) * prr9,
        "PRR7_m": p["n8"] * hill(lhy + s["LHY_pm"], p["g10"], 3)
        + p["n9"] * hill(prr9, p["g11"], 3)
        - p["m14"] * s["PRR7_m"],
        "PRR7_p": p["p9"] * s["PRR7_m"] - (p["m15"] * light + p["m23"] * dark) * prr7,
        "NI_m": p["n10"] * hill(s["LHY_pm"], p["g12"], 2) + p["n11"] * hill(prr7, p["g13"], 2) - p["m16"] * s["NI_m"],
        "NI_p": p["p10"] * s["NI_m"] - (p["m17"] * light + p["m24"] * dark) * ni,
        "GI_m": p["q4"] * acute + p["n12"] * light * off["T_14"] * off["LHY_15"] - p["m18"] * s["GI_m"],
        "GI_p": p["p11"] * s["GI_m"] - p["m19"] * s["GI_p"] - bound,
        "ZTL": p["p14"] - p["m20"] * s["ZTL"] - bound,
        "GI_ZTL": bound - p["m21"] * s["GI_ZTL"],
    }


def test_the_table_is_whole():
    assert (len(SPECIES), len(PARAMETERS), len(REACTIONS)) == (19, 90, 40)
    assert set(np.unique(CHANGES)) == {-1, 0, 1}
    made, lost = (CHANGES == 1).sum(1), (CHANGES == -1).sum(1)
    assert made.min() >= 1 and lost.min() >= 1
    for gene in GENES:  # mRNA is transcribed and decays, and is never used up by translation
        assert made[SPECIES.index(f"{gene}_m")] == lost[SPECIES.index(f"{gene}_m")] == 1
    # Binding keeps the molecules of GI and of ZTL.
    for name in ("GI_ZTL_binding", "GI_ZTL_release"):
        change = REACTIONS[name].change
        assert change["GI_p"] + change["GI_ZTL"] == change["ZTL"] + change["GI_ZTL"] == 0


def test_the_drift_of_the_jump_process_is_the_published_equation():
    all_rates, random = rates(PARAMETERS | SWITCHES), rng(1)
    for _ in range(50):
        x, brightness = random.uniform(0, 1.5, len(SPECIES)), random.uniform()
        expected = published_drift(x, brightness, PARAMETERS)
        np.testing.assert_allclose(
            ode.drift(x, brightness, all_rates), [expected[s] for s in SPECIES], rtol=1e-12, atol=1e-13
        )


def test_an_event_without_molecules_has_rate_zero():
    all_rates = rates(PARAMETERS | SWITCHES)
    for i in range(len(SPECIES)):
        x = np.ones(len(SPECIES))
        x[i] = 0
        for brightness in (0.0, 0.3, 1.0):
            assert (all_rates(x, brightness)[CHANGES[i] < 0] == 0).all()


def test_light():
    days, dark, bright = CONDITIONS["LD12"], CONDITIONS["DD"], CONDITIONS["LL"]
    assert light(0, days) == pytest.approx(0.5) and light(24, days) == pytest.approx(0.5)
    assert light(6, days) == pytest.approx(1, abs=1e-9) and light(18, days) == pytest.approx(0, abs=1e-9)
    assert light(23.9, days) == pytest.approx(0.401, abs=1e-3)  # rises before dawn
    assert light(125, CONDITIONS["LD4"]) < 0.03 < 0.99 < light(101, CONDITIONS["LD4"])
    assert light(117.7, dark) == light(130, dark) == 0 and light(100, dark) == pytest.approx(1, abs=1e-3)
    assert light(120, bright) == light(143, bright) == 1 and light(TIMES[0], bright) == pytest.approx(0.483, abs=1e-3)
    assert TIMES[[0, 1, 12]] == pytest.approx([119.983, 121.985, 144], abs=1e-3)


PEAKS = {  # hours after dawn, peak, trough; 12 hours of light, day 21
    "LHY": (0.10, 1.004, 0.003),
    "PRR9": (1.10, 0.993, 0.000),
    "PRR7": (5.45, 1.012, 0.025),
    "NI": (10.20, 1.017, 0.007),
    "GI": (10.10, 0.935, 0.000),
    "Y": (9.95, 0.971, 0.036),
    "TOC1": (14.25, 0.981, 0.103),
}


@cache
def day_21(p6):
    times = np.arange(480, 504.01, 0.05)
    return ode.solve(times, Condition(until=np.inf), PARAMETERS | {"p6": p6})


def misses(x):
    return [
        gene
        for gene, (hour, peak, trough) in PEAKS.items()
        if not (
            0.05 * np.argmax(x[f"{gene}_m"]) == pytest.approx(hour, abs=0.026)
            and x[f"{gene}_m"].max() == pytest.approx(peak, abs=6e-4)
            and x[f"{gene}_m"].min() == pytest.approx(trough, abs=6e-4)
        )
    ]


def test_peaks_of_the_differential_equation():
    x = day_21(0.44)
    assert misses(x) == []
    assert max(abs(v[0] - v[-1]) for v in x.values()) == pytest.approx(2.2e-5, abs=1e-6)


def test_peaks_tell_the_two_values_of_p6_apart():
    assert len(misses(day_21(0.436))) >= 3


@pytest.mark.parametrize(
    ("condition", "network", "gene", "period"),
    [
        (Condition(24, (), 240), "wildtype", "LHY", 24.53),
        (Condition(24, (), 240), "wildtype", "TOC1", 24.53),
        (Condition(0, (), 240), "wildtype", "LHY", 27.6),
        (Condition(24, (), 240), "mutant", "LHY", 27.3),
        (Condition(0, (), 240), "mutant", "LHY", 32.7),
        (Condition(24, ("GI",), 240), "wildtype", "LHY", 27.2),
        (Condition(24, ("LHY",), 240), "wildtype", "TOC1", 17.0),
        (Condition(24, ("TOC1",), 240), "wildtype", "LHY", 20.4),
    ],
)
def test_free_running_periods(condition, network, gene, period):
    times = np.arange(240, 240 + 24 * 14, 0.1)
    x = ode.solve(times, condition, PARAMETERS | NETWORKS[network])[f"{gene}_m"]
    digits = 0.006 if round(period, 1) != period else 0.06
    assert np.diff(ode.peaks(x, times))[-3:].mean() == pytest.approx(period, abs=digits)


@pytest.mark.parametrize(("network", "name"), [("wildtype", "DD"), ("mutant", "ko_GI"), ("wildtype", "LD4")])
def test_copasi_holds_the_same_equations(network, name):
    """Without noise both engines follow one curve; with the light of another condition they do not."""
    import basico

    condition = CONDITIONS[name]
    values = numbers(network, condition)
    model = build(condition, values)
    wanted = [f"[{species}]" for species in SPECIES]
    settings = {"method": "deterministic", "r_tol": 1e-9, "a_tol": 1e-11, "max_steps": 10**7, "update_model": False}
    table = basico.run_time_course_with_output(wanted, values=TIMES.tolist(), start_time=0.0, model=model, **settings)
    basico.remove_datamodel(model)
    start = {species: count / OMEGA for species, count in start_counts().items()}
    ours = ode.solve(TIMES, condition, values, start=start)
    other = ode.solve(TIMES, CONDITIONS["LD8"], values, start=start)
    assert np.abs(table.to_numpy() - np.column_stack(list(ours.values()))).max() < 1e-4
    assert np.abs(table.to_numpy() - np.column_stack(list(other.values()))).max() > 0.1


def test_start_counts():
    assert start_counts()["LHY_m"] == 100 and start_counts()["LHY_p"] == 41 and start_counts()["NI_m"] == 4
    assert start_counts(1000)["PRR7_p"] == 19
    assert sum(PUBLISHED_START[s] * OMEGA // 1 != n for s, n in start_counts().items()) == 6
