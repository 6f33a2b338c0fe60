"""A stored run is the run: lossless, all or nothing, and never mistaken for something else."""

import gzip
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

from crossfade.app import store
from crossfade.app.words import with_error
from crossfade.types import CrossfadeError, Estimate, Leg, Result, Sharing, Trace


def trace(seed: int, *, n_chains=4, n_rungs=30, n_draws=1, extra=False) -> Trace:
    rng = np.random.default_rng(seed)
    log_ratio = rng.normal(size=(n_chains, n_rungs, n_draws))
    log_ratio[0, 0, 0], log_ratio[1, 1, 0] = -np.inf, np.nan
    acceptance = rng.uniform(size=(n_chains, n_rungs)).astype(np.float32)
    recorded = {name: rng.normal(size=(*log_ratio.shape, 3)) for name in ("theta", "score")} if extra else {}
    recorded |= {"swapped": log_ratio > 0, "count": np.arange(log_ratio.size).reshape(log_ratio.shape)} if extra else {}
    return Trace(np.linspace(0, 1, n_rungs) ** 5, log_ratio, acceptance, n_draws > 1, recorded)


def posterior(seed: int, scalar: str, *others: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [(), (2,), (2, 3), (1,), ()]
    return {name: rng.normal(size=(4, 6, *shape)) for name, shape in zip((scalar, *others), shapes, strict=False)}


def result(**changes) -> Result:
    run = Result(
        raw_estimate=Estimate(8.8571, 0.008, 15.0, "trapezoid"),
        verdict="weak",
        reasons=("The standard error is 0.2: σ > 3.", "Rungs 0 and 1 overlap too little: 1 < 2."),
        opinions={
            "bar": Estimate(8.86, 0.01, 15.0, "bar"),
            "jarzynski": Estimate(np.inf, np.nan, 3.0, "Jarzynski"),
        },
        differences={"bar": Estimate(0.003, 0.001, 15.0, "bar - trapezoid")},
        checks={"hysteresis": Estimate(-0.01, 0.02, 30.0, "hysteresis"), "slope": Estimate(1.01, 0.02, 30.0)},
        legs=(
            Leg("no data → M1 / prior", -1.0, trace(1, n_draws=5, extra=True), None),
            Leg("no data → M2", 0.5, trace(2), trace(3)),
        ),
        sharing=Sharing(("Intercept", "variance"), ("x",), (), ("Intercept",), ("b is not shared: <reason>.",)),
        about={
            "method": "NETI",
            "n_iter": np.int64(64000),
            "seed": 0,
            "ladder": np.array([0.0, 1.0]),
            "nested": {"a": [1], "b": {"c": [None, True, "σ", 0.1, {}]}},
            "notes": [],
            "dims": {"a": ["group"], "I(x / 2)": ["group", "time"]},
            "coords": {"group": ["<b>", "/"], "time": [0.5, 1.5, 2.5]},
        },
        draws=(posterior(4, "b", "a", "I(x / 2)"), posterior(5, "group[T.b]", "chain", "/", "parameter_1", "")),
    )
    return run._replace(**changes)


def same(a, b) -> bool:
    """Equal in every bit, NaN equal to NaN, types and dtypes included."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def test_round_trip_is_lossless(tmp_path):
    run = result()
    store.save(run, tmp_path / "run.nc")
    back = store.load(tmp_path / "run.nc")
    expected_about = {**run.about, "n_iter": 64000, "ladder": [0.0, 1.0]}
    assert same(run._replace(about=expected_about), back)
    assert not same(run, back._replace(reasons=()))  # the comparison itself can fail
    assert not same(run.legs, back.legs[:1])
    assert not same(run, back._replace(draws=(back.draws[0], {})))


def test_round_trip_without_the_optional_parts(tmp_path):
    run = result(opinions={}, differences={}, checks={}, legs=(Leg("M1 → M2", 1.0, trace(1), None),), about={})
    run = run._replace(reasons=(), draws=({}, posterior(1, "a")))
    store.save(run, tmp_path / "run.nc")
    assert same(run, store.load(tmp_path / "run.nc"))


def test_a_sign_may_be_a_whole_number(tmp_path):
    store.save(result(legs=(Leg("M1 → M2", 1, trace(1), None),)), tmp_path / "run.nc")
    assert store.load(tmp_path / "run.nc").legs[0].sign == 1.0


def stored(name: str, folder: Path) -> Path:
    path = folder / name
    path.write_bytes(gzip.decompress(Path(__file__).with_name(f"{name}.gz").read_bytes()))
    return path


def test_a_run_of_the_first_format_still_loads(tmp_path):
    """Written before there were verdicts and posterior draws."""
    back = store.load(stored("format_1.nc", tmp_path))
    assert back.log_bayes_factor == back.raw_estimate == Estimate(1.5, 0.1, 1.0, "trapezoid")
    assert [leg.sign for leg in back.legs] == [-1.0, 1.0]
    assert (back.verdict, back.reasons, back.checks, back.draws) == ("weak", ("a warning",), {}, ({}, {}))
    assert "Verdict: weak" in str(back)


def test_a_run_of_the_second_format_still_loads(tmp_path):
    """Of the default method, y ~ x and y ~ z of the radiata data; its draws were cut to 4 chains of 10."""
    back = store.load(stored("format_2.nc", tmp_path))
    assert with_error(back.log_bayes_factor) == "6.8046 ± 0.0037" and list(back.differences) == list(back.opinions)
    assert (back.verdict, back.reasons) == ("trustworthy", ())
    assert list(back.checks) == ["hysteresis"] and back.hysteresis.value == pytest.approx(0.0237, abs=1e-4)
    assert back.sharing == Sharing(("variance", "Intercept"), ("x",), ("z",), ())
    assert back.posteriors["M2"].posterior["z"].shape == (4, 10)
    store.save(back, tmp_path / "new.nc")
    assert same(back, store.load(tmp_path / "new.nc"))


@pytest.mark.parametrize("name", ["format_1.nc", "format_2.nc"])
def test_an_old_run_is_still_checked(name, tmp_path):
    path = stored(name, tmp_path)
    with h5py.File(path, "r+") as file:
        file["leg_0/forward/tau"][1] = 0.4
    with pytest.raises(CrossfadeError, match=r"damaged.*digest"):
        store.load(path)


def test_other_tools_find_the_posterior_draws(tmp_path):
    run = result()
    store.save(run, tmp_path / "run.nc")
    with xarray.open_datatree(tmp_path / "run.nc", engine="h5netcdf") as tree:
        found = tree["M1"].posterior
        assert found["b"].dims == ("chain", "draw")
        assert found["a"].dims == ("chain", "draw", "group")
        assert list(found["group"].values) == ["<b>", "/"]
        assert found["a"].dtype == np.float64
        np.testing.assert_array_equal(found["draw"], np.arange(6))
        np.testing.assert_array_equal(found["a"], run.draws[0]["a"])
    with h5py.File(tmp_path / "run.nc") as file:
        assert file["M1/posterior/a"].compression == "gzip"


def test_long_texts_fit(tmp_path):
    run = result(reasons=("w" * 100_000,), about={"note": "n" * 200_000})
    store.save(run, tmp_path / "run.nc")
    assert same(run, store.load(tmp_path / "run.nc"))


def test_the_file_says_what_it_is_and_is_compressed(tmp_path):
    still = trace(1, n_chains=16, n_rungs=2000)
    still = still._replace(log_ratio=np.zeros_like(still.log_ratio), acceptance=np.ones_like(still.acceptance))
    store.save(result(legs=(Leg("M1 → M2", 1, still, still),)), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc") as file:
        assert (file.attrs["kind"], file.attrs["format"], file.attrs["crossfade_version"]) == (
            "crossfade run",
            3,
            "0.1.0",
        )
    assert (tmp_path / "run.nc").stat().st_size < still.log_ratio.nbytes / 2


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    store.save(result(), tmp_path / "run.nc")
    before = (tmp_path / "run.nc").read_bytes()
    with pytest.raises(TypeError, match="cannot store"):
        store.save(result(about={"model": object()}), tmp_path / "run.nc")
    torn = result(legs=(Leg("M1 → M2", 1, trace(1)._replace(extra={"odd": np.array([object()] * 4)}), None),))
    with pytest.raises(Exception, match=r".+"):
        store.save(torn, tmp_path / "run.nc")
    assert (tmp_path / "run.nc").read_bytes() == before
    assert os.listdir(tmp_path) == ["run.nc"]


def test_missing_folder_file_as_folder(tmp_path):
    with pytest.raises(CrossfadeError, match=r"folder .*nowhere does not exist: create it"):
        store.save(result(), tmp_path / "nowhere" / "run.nc")
    with pytest.raises(CrossfadeError, match="is a folder"):
        store.save(result(), tmp_path)


def test_files_that_are_no_runs(tmp_path):
    with pytest.raises(CrossfadeError, match=r"there is no file .*run.nc"):
        store.load(tmp_path / "run.nc")
    (tmp_path / "text.nc").write_text("y,x\n1,2\n")
    with pytest.raises(CrossfadeError, match=r"text.nc is not a crossfade run \(not a netCDF-4 file\)"):
        store.load(tmp_path / "text.nc")
    with h5py.File(tmp_path / "other.nc", "w") as file:
        file["x"] = np.arange(3)
    with pytest.raises(CrossfadeError, match=r"other.nc is netCDF but not a crossfade run"):
        store.load(tmp_path / "other.nc")


def test_a_newer_format_asks_for_an_upgrade(tmp_path):
    store.save(result(), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "a") as file:
        file.attrs["format"], file.attrs["crossfade_version"] = 4, "9.9"
    with pytest.raises(CrossfadeError, match=r"written by crossfade 9.9.*upgrade crossfade"):
        store.load(tmp_path / "run.nc")


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_a_truncated_file_is_damaged(tmp_path, keep):
    path = tmp_path / "run.nc"
    store.save(result(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    with pytest.raises(CrossfadeError, match=r"run.nc is damaged and cannot be read"):
        store.load(path)


def test_a_flipped_byte_in_the_data_is_noticed(tmp_path):
    path = tmp_path / "run.nc"
    store.save(result(), path)
    with h5py.File(path) as file:
        place = file["leg_1/forward/log_ratio"].id.get_chunk_info(0).byte_offset
    whole = bytearray(path.read_bytes())
    whole[place + 40] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(CrossfadeError, match="damaged"):
        store.load(path)


def test_a_run_with_a_part_missing_is_damaged(tmp_path):
    store.save(result(), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "a") as file:
        del file["estimates"]
    with pytest.raises(CrossfadeError, match="damaged"):
        store.load(tmp_path / "run.nc")


def test_one_flipped_bit_in_a_short_variable_is_noticed(tmp_path):
    """Of tau and of an estimate, which have no checksum of HDF5's own, and of draws that were written over."""
    for name in ("leg_0/forward/tau", "estimates/value", "M2/posterior/group[T.b]"):
        path = tmp_path / "run.nc"
        store.save(result(), path)
        with h5py.File(path, "r+") as file:
            values = file[name][...]
            values.flat[-1] = np.nextafter(values.flat[-1], 2.0)
            file[name][...] = values
        with pytest.raises(CrossfadeError, match=r"damaged.*digest"):
            store.load(path)


def test_a_verdict_that_was_made_better_is_noticed(tmp_path):
    store.save(result(), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        file["verdict"][()] = '"trustworthy"'
    with pytest.raises(CrossfadeError, match=r"damaged.*digest"):
        store.load(tmp_path / "run.nc")
