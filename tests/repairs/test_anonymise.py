"""What anonymise takes out, and the shapes that look like it."""

from __future__ import annotations

import pytest

from turnmill.repairs.anonymise import masked

TAKEN = [
    ("Mail ann.lee+x@mail.example.co.uk, please.", "Mail [email], please."),
    ("<bob@corp.com>", "<[email]>"),
    ("mailto:bob_1@corp.com?subject=x", "mailto:[email]?subject=x"),
    ("Schreib an jörg@firma.de.", "Schreib an [email]."),
    ("Call +49 30 901820 now", "Call [phone] now"),
    ("+1 (212) 555-0143", "[phone]"),
    ("tel:+4930901820123", "tel:[phone]"),
    ("(212) 555-0143 or 212-555-0143", "[phone] or [phone]"),
    ("from 8.8.8.8:53", "from [ip-address]:53"),
    ("host 2a00:1450:4001:82a::200e up", "host [ip-address] up"),
    ("key=sk-proj-" + "aB3" * 10, "key=[secret]"),
    ("Authorization: Bearer ghp_" + "a1" * 18, "Authorization: Bearer [secret]"),
    ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
    ("hf_" + "aBcD" * 9, "[secret]"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "[secret]"),
    ("-----BEGIN RSA PRIVATE KEY-----\n" + "MIIE\n" * 20 + "-----END RSA PRIVATE KEY-----", "[secret]"),
    ("open /home/ann/notes.txt", "open /home/[user]/notes.txt"),
    ("cd /home/ann", "cd /home/[user]"),
    ("/Users/ann.lee/Desktop", "/Users/[user]/Desktop"),
    (r"C:\Users\Ann\Desktop", r"C:\Users\[user]\Desktop"),
    (r'"C:\\Users\\Ann\\Desktop"', r'"C:\\Users\\[user]\\Desktop"'),
]

TAKEN += [
    ("HOME=/home/ann\nPWD=/home/ann", "HOME=/home/[user]\nPWD=/home/[user]"),
    ("~/.claude/projects/-home-ann-work/x.jsonl", "~/.claude/projects/-home-[user]-work/x.jsonl"),
    ("-Users-ann-work", "-Users-[user]-work"),
    ("total 8\n-rw-r--r--  1 ann  staff   64 Mar  2 a.py\ndrwxr-xr-x@ 2 ann ann 4096 Mar 2 b",
     "total 8\n-rw-r--r--  1 [user]  staff   64 Mar  2 a.py\ndrwxr-xr-x@ 2 [user] [user] 4096 Mar 2 b"),
    ("ann@laptop:~/work$ ls", "[user]@[host]:~/work$ ls"),
    ("ann@Anns-MacBook-Pro work % ls", "[user]@[host] work % ls"),
    ("uid=1000(ann) gid=1000(ann) groups=1000(ann),27(sudo)",
     "uid=1000([user]) gid=1000([user]) groups=1000([user]),27(sudo)"),
    ("USER=ann\nLOGNAME=ann", "USER=[user]\nLOGNAME=[user]"),
    ("commit 1f\nAuthor: Ann Lee <ann@corp.com>", "commit 1f\nAuthor: [name] <[email]>"),
    ("    Co-Authored-By: Ann Lee <ann@corp.com>", "    Co-Authored-By: [name] <[email]>"),
    ("export SERVICE_API_KEY='a1b2c3d4e5f6g7'", "export SERVICE_API_KEY='[secret]'"),
    ('"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG"', '"AWS_SECRET_ACCESS_KEY=[secret]"'),
    ("DB_PASSWORD: hunter2hunter2", "DB_PASSWORD: [secret]"),
    ('-H "Authorization: Bearer abcdef0123456789xyz"', '-H "Authorization: Bearer [secret]"'),
    ("postgres://app:s3cr3tpw@db.internal/x", "postgres://app:[secret]@db.internal/x"),
]  # fmt: skip

LEFT = [
    "icon@2x.png and style@media.css",
    "git@github.com:org/repo.git",
    "pip install a@1.2.3; @app.route; user@localhost",
    "https://x.org/@ann/posts",
    "version 1.2.3.4567, section 3.4.5.6.7, 999.1.1.1",
    "127.0.0.1, 10.0.0.7, 192.168.1.1, 0.0.0.0, 192.0.2.1",
    "std::vector<int>::iterator a::b 12:34:56 2001:db8::1",
    "pi is 3.14159265358979, 1234567890, 2024-01-31, 212-55-01",
    "4 + 1234567890123 = x, a+4930901820123",
    "ISBN 978-0-306-40615-7, 123e4567-e89b-12d3-a456-426614174000",
    "+1 000 or so, +12 34, +1 22 33 44 55 66 77 88 99",
    "0.212-555-0143-9",
    "sk-learn and task-force-of-the-whole-country",
    'navigate("/home/settings"), https://x.org/home/page/1, /home/user/x, /Users/Shared/x',
    "~/notes, $HOME/notes, /var/home/ann/x",
    "root@4f2c9d1e:/workspace# ls -l",
    "-rw-r--r-- 1 root root 64 Mar 2 a.py",
    "uid=0(root) gid=0(root); x=10(ms)",
    "EOS_TOKEN=begin_of_text, MAX_TOKENS=4096000000000, OPENAI_API_KEY=$OPENAI_API_KEY",
    "TOKEN=<your-token-here-1234567890>",
    "postgres://postgres:postgres@localhost/x, https://user:password@localhost, http://x.org:8080/a@b",
    "git@host:path and 50 % of ann@home",
    "the-Users-guide, my-home-page-1, /home-office/x",
    "Author: see <AUTHORS.md below",
]


@pytest.mark.parametrize(("text", "becomes"), TAKEN)
def test_traces_are_taken_out(text, becomes):
    assert masked(text) == becomes


@pytest.mark.parametrize("text", LEFT)
def test_what_looks_like_it_stays(text):
    assert masked(text) == text


def test_every_place_of_a_row_is_masked_but_definitions(mend):
    call = {"function": {"name": "f", "arguments": {"to": ["a@b.com"], "n": 1}}}
    record = {
        "messages": [
            {"role": "user", "content": "a@b.com?", "name": "a@b.com"},
            {"role": "assistant", "content": "<think>a@b.com</think>ok", "tool_calls": [call]},
            {"role": "tool", "content": "sent to a@b.com"},
            {"role": "assistant", "content": "done"},
        ],
        "tools": [{"name": "f", "description": "such as a@b.com", "parameters": {}}],
    }
    mended = mend("anonymise", record)
    conversation = mended.conversation
    assert mended.turns == [
        ["user", "[email]?"], ["analysis", "[email]"], ["commentary", "ok"], ["call", "f", {"to": ["[email]"], "n": 1}],
        ["result", "f", "sent to [email]"], ["final", "done"],
    ]  # fmt: skip
    assert conversation.verbatim == {1: "<think>[email]</think>ok"}
    assert conversation.messages[0].name == "[email]"
    assert conversation.tools[0]["description"] == "such as a@b.com"


PIECES = ["a", "a.b", "1-", "+1 ", "2001:", "@", "eyJ", "-----BEGIN PRIVATE KEY-----", "A_KEY=", "a@b:~", "://a:",
          "Author: ", "-rw-r--r--  1 ", "groups=1", "-home-", "KEY"]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_long_texts_take_no_time(piece):
    assert masked(piece * 20000) == piece * 20000
