"""Records: strict JSON out, declared types in."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.records import Campaign, Cell, Finding, dumps, from_json, load, to_json
from oracle.verdict import Answer, Comparison, Verdict
from tenferro_ref.errors import FormatError
from tests.reports import sample

pytestmark = pytest.mark.once


def odd() -> Campaign:
    """A campaign with the floats that JSON has no numbers for."""
    rich = sample.rich()
    totals = replace(rich.totals[0], worst_ulp=math.inf, widths=((-math.inf, math.inf), (0.5, 1.0)))
    return replace(rich, totals=(totals,), cells=(Cell("Add", "F32", "native", {"pass": 1}, math.inf),))


@pytest.mark.parametrize("make", [sample.rich, sample.empty, sample.hostile, sample.known_only, odd])
def test_a_campaign_comes_back_from_strict_json(tmp_path: Path, make: object) -> None:
    campaign = make()  # type: ignore[operator]
    (tmp_path / "campaign.json").write_text(dumps(campaign))
    json.loads((tmp_path / "campaign.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert repr(load(tmp_path / "campaign.json")) == repr(campaign)  # a NaN equals no other


def test_the_bare_words_of_version_1_are_still_read(tmp_path: Path) -> None:
    content = json.loads(dumps(odd()))
    content["tenferro_campaign"] = 1
    text = json.dumps(content, allow_nan=True).replace('"inf"', "Infinity").replace('"-inf"', "-Infinity")
    (tmp_path / "old.json").write_text(text)
    assert load(tmp_path / "old.json") == odd()


def test_seconds_are_finite(tmp_path: Path) -> None:
    """Also in version 1, whose floats may be bare words."""
    content = json.loads(dumps(sample.rich())) | {"tenferro_campaign": 1}
    for seconds in (math.nan, math.inf, "inf"):
        content["seconds"]["total"] = seconds
        (tmp_path / "old.json").write_text(json.dumps(content))
        with pytest.raises(FormatError, match=r"\$\.seconds"):
            load(tmp_path / "old.json")


def test_records_without_surveys_are_still_read(tmp_path: Path) -> None:
    content = json.loads(dumps(sample.rich()))
    del content["surveys"]
    (tmp_path / "old.json").write_text(json.dumps(content | {"tenferro_campaign": 3}))
    assert load(tmp_path / "old.json") == replace(sample.rich(), surveys=())


def test_an_answer_comes_back() -> None:
    answer = Answer(
        "pjrt:x", Verdict.MISMATCH, Comparison(3, worst_ulp=math.inf, worst_output=0, worst_index=(1, 2)),
        error={"kind": "PjrtCall", "lhs": [1, 2]}, seconds={"execute": 1.5},
    )  # fmt: skip
    assert from_json(Answer, to_json(answer)) == answer
    assert math.isnan(from_json(Comparison, to_json(Comparison(worst_ulp=math.nan))).worst_ulp or 0.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": "red"}, r"unknown key \$\.colour"),
        (
            {"values": [{"name": "", "index": "", "expected": "", "observed": "", "outside": True, "x": 0}]},
            r"key \$\.values\[0\]\.x",
        ),
        ({"programs": "three"}, r"`int`, got `str` - at `\$\.programs`"),
        ({"programs": True}, r"got `bool` - at `\$\.programs`"),
        ({"programs": None}, r"got `null` - at `\$\.programs`"),
        ({"reduce_seconds": "soon"}, r"`float`, got `str` - at `\$\.reduce_seconds`"),
        ({"reduce_seconds": "inf"}, r"`float`, got `str` - at `\$\.reduce_seconds`"),
        ({"reduce_seconds": -1.0}, r">= 0.0 - at `\$\.reduce_seconds`"),
        ({"reduce_seconds": math.nan}, "NaN is no number"),
        ({"also": "native"}, r"`array`, got `str` - at `\$\.also`"),
        ({"also": [1]}, r"`str`, got `int` - at `\$\.also\[0\]`"),
        ({"inputs": [["a", "b", "c"]]}, r"of length 2, got 3 - at `\$\.inputs\[0\]`"),
        ({"values": [{"name": "x"}]}, r"missing required field `index` - at `\$\.values\[0\]`"),
        ({"values": [7]}, r"`object`, got `int` - at `\$\.values\[0\]`"),
    ],
)
def test_another_type_is_said_with_its_place(change: dict[str, object], words: str) -> None:
    content = json.loads(to_json(sample.finding())) | change
    with pytest.raises(FormatError, match=words):
        from_json(Finding, json.dumps(content))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "null", '{"tenferro_campaign": 5}', '{"tenferro_campaign": 4}', "[" * 100_000]
)
def test_a_file_that_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(FormatError, match=r"c\.json"):
        load(tmp_path / "c.json")


def test_a_verdict_that_is_none() -> None:
    with pytest.raises(FormatError, match=r"'fine' - at `\$\.verdict`"):
        from_json(Answer, '{"executor": "native", "verdict": "fine"}')
