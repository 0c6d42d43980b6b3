"""Substitution of paths and ids: at once, the longest first, whole path segments only, in text, in JSON and as map keys."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.text.substitute import substitute

TABLE = {"/home/user": "/srv/me", "/home/user/work": "/data/project", "/tmp": "/scratch", "/srv/me": "/home/user"}


def put(text: str, table: Mapping[str, str] = TABLE) -> str:
    """Substitute paths, and see that bytes and JSON in JSON give the same."""
    done = substitute(text, table.__getitem__, table)
    in_bytes = {old.encode(): new.encode() for old, new in table.items()}
    assert substitute(text.encode(), in_bytes.__getitem__, in_bytes) == done.encode()
    for ascii_only in (False, True):
        raw = json.dumps(json.dumps({text: text}, ensure_ascii=ascii_only), ensure_ascii=ascii_only)
        assert json.loads(json.loads(substitute(raw, table.__getitem__, table))) == {done: done}
    return done


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/user/work", "/data/project"),
        ("/home/user/work/a.txt", "/data/project/a.txt"),
        ("/home/user/.codex", "/srv/me/.codex"),
        ("/home/user/workshop", "/srv/me/workshop"),
        ("cd /tmp && cat /home/user/work/x >/tmp/y", "cd /scratch && cat /data/project/x >/scratch/y"),
        ("It lies in /tmp. Or in /tmp, (/tmp); '/tmp'", "It lies in /scratch. Or in /scratch, (/scratch); '/scratch'"),
        ("--dir=/tmp PATH=/bin:/tmp -I/tmp/include", "--dir=/scratch PATH=/bin:/scratch -I/scratch/include"),
        ("file:///tmp/x", "file:///scratch/x"),
        ("diff --git a//tmp/x b//tmp/x", "diff --git a//scratch/x b//scratch/x"),
        ("one\n/tmp\ttwo\t/tmp", "one\n/scratch\ttwo\t/scratch"),
        ("«/tmp»", "«/scratch»"),
    ],
)
def test_paths_are_put_in_place_of_whole_segments(text: str, expected: str) -> None:
    assert put(text) == expected


OTHERS = """
/var/tmp/x /var//tmp /a//tmp //tmp http://h/tmp ./tmp ../tmp ~/tmp x-I/tmp é/tmp /tmpfile /tmp-x /tmp.old /tmp_
/tmpé /home/userland /opt/home/user
"""


@pytest.mark.parametrize("text", OTHERS.split())
def test_parts_of_other_paths_stay(text: str) -> None:
    assert substitute(text, TABLE.__getitem__, TABLE) is text
    assert put(text) == text


def test_a_new_root_doubles_no_slash() -> None:
    table = {"/home/user/work": "/"}
    assert put("cd /home/user/work; cat /home/user/work/x", table) == "cd /; cat /x"


def test_an_id_ends_where_its_word_ends() -> None:
    ids = {b"redacted-1": b"secret", b"secret": b"other"}
    assert substitute(b"redacted-1 redacted-12 secret", ids.__getitem__, (), ids) == b"secret redacted-12 other"


# -- properties ---------------------------------------------------------------------------------------------------------

OLD = st.lists(st.sampled_from(["a", "b", "ab", "a.b"]), min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
TABLES = st.lists(OLD, unique=True, max_size=5).flatmap(
    lambda old: st.permutations([f"/live{i}/x" for i in range(len(old))]).map(lambda new: dict(zip(old, new, strict=True)))
)
#: Among what stands around a path: borders, and what carries a segment on.
AROUND = st.sampled_from([" ", "'", '"', "\n", ":", "=", "(", ") ", "/", "a", "-", ".", "~", "é", "\\", ""])
TEXTS = st.lists(st.one_of(OLD, AROUND), max_size=12).map("".join)


@given(TEXTS, TABLES)
def test_the_inverse_restores_the_text(text: str, table: dict[str, str]) -> None:
    done = substitute(text, table.__getitem__, table)
    inverse = {new: old for old, new in table.items()}
    assert substitute(done, inverse.__getitem__, inverse) == text


@given(st.lists(OLD, min_size=1, max_size=6), TABLES, st.data())
def test_what_was_put_in_is_never_looked_at_again(paths: list[str], table: dict[str, str], data: st.DataObject) -> None:
    """Whatever the new paths are, old ones too: each path becomes what its longest leading segments stand for."""
    table = {old: data.draw(OLD) for old in table}
    expected = []
    for path in paths:
        parts = path.split("/")
        heads = ["/".join(parts[:i]) for i in range(len(parts), 1, -1)]
        head = next((head for head in heads if head in table), "")
        expected.append(table.get(head, "") + path[len(head) :])
    assert put(" ".join(paths), table) == " ".join(expected)


@given(TEXTS, TABLES)
def test_only_whole_segments_are_replaced(text: str, table: dict[str, str]) -> None:
    """Each path is marked where it was put in: what stands before and after it carries no segment on."""
    marked = substitute(text, lambda _: "<>", table)
    for before, after in zip(marked.split("<>")[:-1], marked.split("<>")[1:], strict=True):
        assert not after[:1].isalnum()
        assert after[:1] not in ("-", "_", "~") or not after
        assert not before[-1:].isalnum() or before[-2:-1] == "\\"
