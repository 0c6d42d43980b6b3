"""Of a long text only the beginning is redacted for a story: it must be what redacting all of it would have begun with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.redact.redactor import Redactor
from codex_replay.plugin.reporting import trace
from codex_replay.plugin.reporting.trace import TraceCollector

PEM = "-----BEGIN RSA PRIVATE KEY-----\\n" + "MIIEowIBAAKCAQEA7bq\\n" * 24 + "-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJSUzI1NiJ9." + "eyJzdWIiOiJhYmNkZWZnaGlq" * 12 + ".c2lnbmF0dXJlc2lnbmF0dXJl"
SECRETS = st.sampled_from(
    (
        *("sk-proj-" + "a1B2" * 12, JWT, PEM, "Bearer " + "q9Zx" * 8, "someone@example.org"),
        '"access_token":"' + "k3J" * 40 + '"',
        '\\"refresh_token\\":\\"' + "k3J" * 40 + '\\"',
    )
)
PLAIN = st.sampled_from(("word ", '{"a":1},', "\\n", "\u00e4\u00f6", "x" * 50)).map(lambda text: text * 3)
TEXTS = st.lists(st.one_of(SECRETS, PLAIN), min_size=1, max_size=30).map(" ".join)
LONGEST, MARGIN = 60, 1024


def held(text: str, margin: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "MARGIN", margin)
        begun, whole = TraceCollector()._beginning(text, LONGEST)
    assert Redactor().text(text).startswith(begun[:LONGEST])
    assert whole == (len(text) if len(text) > LONGEST + 2 * margin else len(Redactor().text(text)))


@given(TEXTS)
def test_the_beginning_is_that_of_the_whole(text: str) -> None:
    held(text, MARGIN)


def test_a_margin_that_is_shorter_than_a_secret_is_found() -> None:
    with pytest.raises(AssertionError):
        held("x" * 48 + " someone@example.org", 0)


def test_so_much_is_secret_that_little_is_left() -> None:
    text = " ".join(f"sk-proj-{i:040}" for i in range(4000))
    begun, whole = TraceCollector()._beginning(text, 2048)
    assert whole == len(text)
    assert begun == Redactor().text(text)[: len(begun)]
    assert "0" * 12 not in begun
