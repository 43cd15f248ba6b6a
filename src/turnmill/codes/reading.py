"""Codes of records that cannot be read."""

from __future__ import annotations

from turnmill.codes.code import Code

READING: dict[str, Code] = {
    "invalid-json": Code(
        "read",
        "The record is not JSON, nests deeper than 256, or holds an integer of over 4,300 digits.",
        '{"messages": [{"role": "user", "content": "hi"}]},',
        "Mend the line; a comma behind each line means that the file was cut out of an array.",
    ),
    "invalid-utf8": Code(
        "read",
        "The record's bytes, or a text of a Parquet row, are not UTF-8.",
        '{"prompt": "caf\\xe9"}  (one Latin-1 byte)',
        "Convert the file: `iconv -f LATIN1 -t UTF-8`.",
    ),
    "duplicate-key": Code(
        "read",
        "One object has the same key twice, so it has two meanings.",
        '{"role": "user", "content": "keep me", "content": "or me"}',
        "Keep one of the two.",
    ),
    "non-finite-number": Code(
        "read",
        "A number is NaN, infinite, or too large for a double: JSON has no such number.",
        '{"score": NaN}',
        "Write null, or leave the key out.",
    ),
    "lone-surrogate": Code(
        "read",
        "An escape, of the record or of arguments inside it, is half of a surrogate pair: no text holds it.",
        '{"prompt": "x \\ud83d y"}',
        "Cut texts between characters, not between UTF-16 units.",
    ),
    "record-not-an-object": Code(
        "read",
        "The record is JSON, but not an object.",
        '["hi", "yo"]',
        'Name the parts: `{"prompt": "hi", "response": "yo"}`.',
    ),
    "record-too-large": Code(
        "read",
        "The record has more bytes than `read.max_record_bytes`.",
        "one line of 100 MB",
        "Raise `read.max_record_bytes` if the record is meant to be so large.",
    ),
    "value-not-json": Code(
        "read",
        "A value of a Parquet row has no JSON form: bytes, or a time that no calendar date holds.",
        "a column of type binary",
        "Leave the column out when the file is written.",
    ),
    "broken-array": Code(
        "read",
        "A JSON array does not go on as an array; nothing behind that place can be read.",
        '[{"prompt": "hi"}, {"prompt": "yo"',
        "Get the file again; `read.keep_prefix` keeps the rows before the fault.",
    ),
    "truncated-file": Code(
        "read",
        "The file ends inside a compressed stream or inside a record; nothing behind that place exists.",
        "the first half of a .jsonl.gz",
        "Get the file again; `read.keep_prefix` keeps the rows before the fault.",
    ),
    "unpacks-too-far": Code(
        "read",
        "A compressed stream unpacks to over 256 MiB and over 200 times its bytes, which no chats do.",
        "a gigabyte of blanks in a .jsonl.gz of one megabyte",
        "If it is meant, unpack it with its own tool and name the unpacked file.",
    ),
    "damaged-file": Code(
        "read",
        "A compressed stream or a Parquet file has bytes that cannot be; nothing behind them can be read.",
        "a .jsonl.gz with a byte overwritten",
        "Get the file again; `read.keep_prefix` keeps the rows before the fault.",
    ),
    "session-torn": Code(
        "read",
        "Events of a session whose beginning is not known: their parent is not in the file, a line before them cannot "
        "be read, or the history was compacted or undone and what took its place is not recorded.",
        "a rollout with a broken line: what stands behind it",
        "Mend the broken line, which is a row of its own; where a log goes on from another file, nothing can be done.",
    ),
    "session-cycle": Code(
        "read",
        "The parent links of a session's events lead in a circle, so that nothing begins them.",
        '{"uuid": "a", "parentUuid": "b", …} and {"uuid": "b", "parentUuid": "a", …}',
        "Look at what wrote or edited the log.",
    ),
    "session-too-branched": Code(
        "read",
        "The branches of one session repeat over 256 MiB of its earlier events.",
        "a long session that was taken up anew from its end a thousand times",
        "The first branches were read; leave the others, or cut the session into files.",
    ),
}
