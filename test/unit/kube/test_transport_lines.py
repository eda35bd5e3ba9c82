"""Lines out of chunks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelfleet.kube.errors import TransportError
from modelfleet.kube.lines import LineSplitter

_line = st.binary(max_size=40).map(lambda text: text.replace(b"\n", b"."))


@given(lines=st.lists(_line), cuts=st.lists(st.integers(min_value=0, max_value=2000)))
def test_however_bytes_are_cut_the_lines_are_the_same(lines: list[bytes], cuts: list[int]) -> None:
    """The invariant of the module, an empty line included."""
    body = b"".join(line + b"\n" for line in lines)
    edges = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    splitter = LineSplitter()
    got = [line for a, b in pairwise(edges) for line in splitter.feed(body[a:b])]
    splitter.finish()
    assert lines == got


def test_an_end_in_the_middle_of_a_line_is_an_error() -> None:
    """Half an event must not be taken for a clean end."""
    splitter = LineSplitter()
    assert [b"one"] == splitter.feed(b"one\ntw")
    with pytest.raises(TransportError, match="middle of a line"):
        splitter.finish()


@pytest.mark.parametrize(
    "chunks", [[b"123456789"], [b"1234", b"56789"], [b"a\n123456789\n"], [b"1234", b"56789\n"]]
)
def test_a_line_over_the_limit_is_an_error(chunks: list[bytes]) -> None:
    """A server that never sends a newline must not fill our memory."""
    splitter = LineSplitter(limit=8)
    with pytest.raises(TransportError, match="more than 8 bytes"):
        list(map(splitter.feed, chunks))


def test_many_lines_may_together_exceed_the_limit() -> None:
    """The limit is one line's."""
    assert [b"12345678"] * 3 == LineSplitter(limit=8).feed(b"12345678\n" * 3)
