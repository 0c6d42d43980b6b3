from __future__ import annotations

import functools
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schema_maker import Maker, planted

from codex_replay.protocol.schema import bundle, validate
from codex_replay.protocol.schema.explain import Explainer

BUNDLE = bundle.load()
VALIDATOR = validate.Validator(BUNDLE)


def sorts() -> list[tuple[str, str, str, str]]:
    """Every sort of frame: (what, sender, method, who asked or "")."""
    found = []
    for sender in ("client", "server"):
        other = {"client": "server", "server": "client"}[sender]
        for direction in (f"{sender}-request", f"{sender}-notification"):
            found += [("call", sender, method, "") for method in BUNDLE.methods(direction)]
        found += [("result", other, method, sender) for method in BUNDLE.methods(f"{sender}-request")]
        found += [("error", other, method, sender) for method in BUNDLE.methods(f"{sender}-request")[:2]]
    return found + [("call", "server", "codex/event/" + event, "") for event in BUNDLE.events()]


SORTS = sorts()


@functools.cache
def frame_schema(sort: tuple[str, str, str, str]) -> validate.FrameSchema:
    what, sender, method, asker = sort
    if what == "result":
        return VALIDATOR.result_schema(asker, method)
    if what == "error":
        return VALIDATOR.error_schema(asker, method)
    return VALIDATOR.frame_schema(sender, method)


def request_for(sort: tuple[str, str, str, str], frame: dict[str, Any]) -> dict[str, Any] | None:
    """The request that a reply of this sort answers."""
    return {"id": frame["id"], "method": sort[2]} if sort[0] in ("result", "error") else None


def check(sort: tuple[str, str, str, str], frame: dict[str, Any]) -> list[validate.Violation]:
    checker = validate.RpcChecker(BUNDLE, VALIDATOR)
    if sort[3]:
        checker.check(sort[3], request_for(sort, frame))
    return checker.check(sort[1], frame)


SEED = st.integers(min_value=0, max_value=2**32).map(random.Random)
QUICK = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@QUICK
@given(sort=st.sampled_from(SORTS), rnd=st.randoms(use_true_random=False))
def test_a_valid_frame_has_no_violation(sort, rnd):
    frame = Maker(frame_schema(sort).opened, rnd).make(sort[2])
    assert check(sort, frame) == []


def judge_fault(sort: tuple[str, str, str, str], maker: Maker, frame: Any, rnd: random.Random) -> None:
    """Plant one fault and require that it, and nothing else, is found."""
    usable = [f for f in maker.faults if not (sort[3] and f.steps == ("id",))]
    if not usable:
        return
    fault = rnd.choice(usable)
    damaged = planted(frame, fault)
    found = check(sort, damaged)
    if fault.vague is not None:
        whole = jsonschema.Draft7Validator(frame_schema(sort).closed).is_valid(damaged)
        assert bool(found) is not whole
        assert all(v.path.startswith(fault.vague) for v in found)
        return
    assert [(v.kind, v.path) for v in found] == [(fault.kind, fault.path)], (damaged, found)
    assert found[0].blame == sort[1]
    if fault.kind != "unknown-key":
        assert found[0].verdict == "valid"


@QUICK
@given(sort=st.sampled_from(SORTS), rnd=st.randoms(use_true_random=False))
def test_a_planted_fault_is_found_at_its_path_with_its_kind(sort, rnd):
    maker = Maker(frame_schema(sort).opened, rnd)
    judge_fault(sort, maker, maker.make(sort[2]), rnd)


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"{sort[0]}-{sort[1]}-{sort[2]}")
def test_every_place_of_every_sort_of_frame(sort):
    rnd = random.Random(sort[2])
    for _ in range(8):
        maker = Maker(frame_schema(sort).opened, rnd)
        frame = maker.make(sort[2])
        assert check(sort, frame) == []
        for _ in range(8):
            judge_fault(sort, maker, frame, rnd)


@QUICK
@given(sort=st.sampled_from([s for s in SORTS if s[0] == "call"]), rnd=st.randoms(use_true_random=False))
def test_an_unknown_method_is_named(sort, rnd):
    frame = Maker(frame_schema(sort).opened, rnd).make(sort[2])
    frame["method"] += "X"
    (found,) = check(sort, frame)
    assert (found.kind, found.verdict, found.path) == ("unknown-method", "valid", sort[2] + "X")
    assert f"`{sort[2]}`" in found.message


def test_two_opinions_agree_on_ten_thousand_frames():
    # jsonschema, the independent one, against jsonschema-rs and against our own walk, on whole and on damaged frames.
    rnd = random.Random(92)
    opened = {sort: jsonschema.Draft7Validator(frame_schema(sort).opened) for sort in SORTS}
    closed = {sort: jsonschema.Draft7Validator(frame_schema(sort).closed) for sort in SORTS}
    frames = invalid = 0
    while frames < 10_000:
        for sort in SORTS:
            schema = frame_schema(sort)
            maker = Maker(schema.opened, rnd)
            frame = maker.make(sort[2])
            for value in (frame, planted(frame, rnd.choice(maker.faults)) if maker.faults else frame):
                frames += 1
                opinion = opened[sort].is_valid(value)
                invalid += not opinion
                assert schema.is_valid(value) is opinion, (sort, value)
                if frames % 8 < 2:  # the closed schemas on a quarter: jsonschema takes its time
                    assert schema.holds(value) is closed[sort].is_valid(value), (sort, value)
                faults = Explainer(schema.opened).faults(value, sort[2])
                assert (not any(f.verdict == "valid" for f in faults)) is opinion, (sort, value, faults)
                assert not (schema.holds(value) and not opinion), (sort, value)
                assert not (schema.holds(value) and faults), (sort, value, faults)
    assert 1_500 < invalid < 8_500
