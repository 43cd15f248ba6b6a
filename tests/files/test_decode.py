import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.errors import Rejected
from turnmill.files.decode import MAX_DEPTH, decode, decode_exactly

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(['":', '\\":', "\\", '"', '\\\\":', " :"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=5)
separators = st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : "), (",", "\t:")])


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 2) + b"1" + b"]" * (depth - 2) + b"}"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'{"a": 1', "invalid-json"),
        (b'{"a": 1,}', "invalid-json"),
        (b"{'a': 1}", "invalid-json"),
        (b'{"a": "tab\there"}', "invalid-json"),
        (b'{"a": 01}', "invalid-json"),
        (b'{"a": 1} {"b": 2}', "invalid-json"),
        (b'{"a": ' + b"9" * 5000 + b"}", "invalid-json"),
        (nested(MAX_DEPTH + 1), "invalid-json"),
        (nested(100_000), "invalid-json"),
        (b"[" * 100_000, "invalid-json"),
        (b'{"a": "\xff"}', "invalid-utf8"),
        (b'{"a": "\xed\xa0\xbd"}', "invalid-utf8"),
        (b'{"a": "caf\xe9"}', "invalid-utf8"),
        (b'{"a": 1, "a": 1}', "duplicate-key"),
        (b'{"a":1,"a" :2}', "duplicate-key"),
        (b'{"ab":1,"a\\u0062":2}', "duplicate-key"),
        (b'{"a\\\\":1,"a\\\\":2,"x":"\\":"}', "duplicate-key"),
        (b'{"a": {"b": [{"c": 1, "c": 2}]}}', "duplicate-key"),
        (b'{"a": NaN}', "non-finite-number"),
        (b'{"a": [-Infinity]}', "non-finite-number"),
        (b'{"a": 1e400}', "non-finite-number"),
        (b'{"a": "x \\ud83d y"}', "lone-surrogate"),
        (b'{"\\udc00": 1}', "lone-surrogate"),
        (b'[{"a": 1}]', "record-not-an-object"),
        (b'"text"', "record-not-an-object"),
        (b"null", "record-not-an-object"),
        (b"12", "record-not-an-object"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_bad_record_has_its_code(raw: bytes, code: str) -> None:
    with pytest.raises(Rejected) as broken:
        decode(raw)
    assert broken.value.code == code
    assert len(broken.value.message) < 160


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"n": 123456789012345678901}', {"n": 123456789012345678901}),
        (b'{"emoji": "\\ud83d\\ude00"}', {"emoji": "\U0001f600"}),
        (b'{"nul": "\\u0000"}', {"nul": "\0"}),
        (b'{"sep": "a\xe2\x80\xa8b\xc2\x85c"}', {"sep": "a\u2028b\x85c"}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"a" : {"b" : 1}}', {"a": {"b": 1}}),
        (b'{"call": "{\\"city\\": \\"Oslo\\"}"}', {"call": '{"city": "Oslo"}'}),
        (b"{}", {}),
    ],
)
def test_a_good_record_is_taken_as_written(raw: bytes, value: object) -> None:
    assert decode(raw) == decode_exactly(raw) == value


@pytest.mark.parametrize("depth", [2, 100, MAX_DEPTH])
def test_nesting_up_to_the_limit_is_read(depth: int) -> None:
    assert decode(nested(depth)) == json.loads(nested(depth))


@given(objects, separators, st.booleans())
@settings(deadline=None)
def test_whatever_json_writes_is_read_back(value: dict[str, object], between: tuple[str, str], ascii: bool) -> None:
    raw = json.dumps(value, separators=between, ensure_ascii=ascii).encode()
    assert decode(raw) == decode_exactly(raw) == value


@given(objects.filter(bool), st.data(), separators)
@settings(deadline=None)
def test_a_key_written_twice_is_always_seen(
    value: dict[str, object], data: st.DataObject, between: tuple[str, str]
) -> None:
    key = data.draw(st.sampled_from(sorted(value)))
    body = json.dumps(value, separators=between)[1:-1]
    again = json.dumps({key: data.draw(values)}, separators=(",", ":"))[1:-1]
    with pytest.raises(Rejected, match="duplicate-key"):
        decode(f"{{{body},{again}}}".encode())


@given(
    st.binary(max_size=40)
    | objects.map(msgspec.json.encode).flatmap(lambda raw: st.integers(0, len(raw)).map(lambda cut: raw[:cut]))
)
@settings(deadline=None)
def test_the_fast_path_never_admits_what_the_exact_one_refuses(raw: bytes) -> None:
    assert outcome(decode, raw) == outcome(decode_exactly, raw)


def outcome(decoder: Callable[[bytes], object], raw: bytes) -> object:
    try:
        return decoder(raw)
    except Rejected as rejected:
        return rejected.code, rejected.message
