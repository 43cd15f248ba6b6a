"""The language of the answers, told without a model: by their script, then by the commonest words of languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from turnmill.conversation import Checked
from turnmill.errors import Rejected
from turnmill.filters import row_filter
from turnmill.filters.answers import answers, without_code
from turnmill.filters.common_words import COMMON_WORDS, MARKS
from turnmill.options import Filter

MAX_CHARACTERS = 4000
"""So much of the answers is looked at."""
MIN_LETTERS = 20
"""Of one script; Chinese, Japanese and Korean say as much in a third of them."""
MIN_WORDS = 20
MIN_SHARE, MIN_LEAD = 0.12, 1.6
"""Share of common words in a text, and how much the first language must lead before the second."""
SCRIPT_SHARE = 0.8
"""Of all letters: a text of several scripts is undecided."""

SCRIPTS = {
    "latin": r"a-zA-Z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "cyrillic": r"\u0400-\u052f",
    "greek": r"\u0370-\u03ff\u1f00-\u1fff",
    "arabic": r"\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff",
    "hebrew": r"\u05d0-\u05ea",
    "devanagari": r"\u0904-\u0939\u0958-\u0961",
    "thai": r"\u0e01-\u0e30",
    "hangul": r"\u1100-\u11ff\uac00-\ud7a3",
    "kana": r"\u3041-\u3096\u30a1-\u30fa",
    "han": r"\u3400-\u4dbf\u4e00-\u9fff",
}
ONE_LANGUAGE = {"greek": "el", "hebrew": "he", "thai": "th", "hangul": "ko"}
"""Scripts that hardly any other language is written in."""
SPOKEN_IN = {
    "latin": (
        "cs",
        "da",
        "de",
        "en",
        "es",
        "fi",
        "fr",
        "hu",
        "id",
        "it",
        "nl",
        "no",
        "pl",
        "pt",
        "ro",
        "sv",
        "tr",
        "vi",
    ),
    "cyrillic": ("bg", "ru", "uk"),
    "arabic": ("ar", "fa", "ur"),
    "devanagari": ("hi", "mr"),
}
KNOWN = tuple(sorted({"ja", "zh", *ONE_LANGUAGE.values(), *(name for names in SPOKEN_IN.values() for name in names)}))
"""Languages that are told apart."""
_LETTERS = {script: re.compile(f"[{letters}]") for script, letters in SCRIPTS.items()}
_WORD = re.compile(r"(?:[^\W\d_]|[\u0900-\u0963])+(?:['’][^\W\d_]+)?")  # vowel signs are no letters to `re`
_NOT_PROSE = re.compile(r"https?://\S+|\S+@\S+|\$[^$\n]+\$|<[^>\n]+>")


@row_filter("language")
def language(conversation: Checked, options: Filter) -> Rejected | None:
    """Refuse a conversation whose answers are clearly in a language that is not kept; undecided ones stay."""
    keep = options.language.keep
    if not keep:
        return None
    said = list(answers(conversation))
    found = language_of("\n".join(message.text for message in said))
    if found is None or found in keep:
        return None
    return Rejected("language", f"the answers are in {found}; {', '.join(keep)} are kept", at=said[0].recorded)


def language_of(text: str) -> str | None:
    """Two-letter code of the language of a text, None where it is too short, mixed, or like two languages."""
    prose = _NOT_PROSE.sub(" ", without_code(text)[:MAX_CHARACTERS])
    script = _script_of(prose)
    if script is None or script in ONE_LANGUAGE:
        return ONE_LANGUAGE.get(script or "")
    if script in ("han", "kana"):
        return "zh" if script == "han" else "ja"
    return _by_words(prose, SPOKEN_IN[script])


def _script_of(prose: str) -> str | None:
    """The script that nearly all letters are of; `kana` for Japanese, which mixes two."""
    counts = {script: len(letters.findall(prose)) for script, letters in _LETTERS.items()}
    weights = {script: count * 3 if script in ("han", "kana", "hangul") else count for script, count in counts.items()}
    japanese = counts["kana"] >= 0.15 * (counts["han"] + counts["kana"])
    if japanese or counts["kana"] <= 0.02 * counts["han"]:
        together = "kana" if japanese and counts["kana"] else "han"
        weights[together], weights["han" if together == "kana" else "kana"] = weights["han"] + weights["kana"], 0
    script, most = max(weights.items(), key=lambda item: item[1])
    return script if most >= MIN_LETTERS and most >= SCRIPT_SHARE * sum(weights.values()) else None


def _by_words(prose: str, languages: tuple[str, ...]) -> str | None:
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(prose)]
    if len(words) < MIN_WORDS:
        return None
    shares = _shares(words, prose, languages)
    (first, most), (_, second) = sorted(shares.items(), key=lambda item: -item[1])[:2]
    return first if most >= MIN_SHARE and most >= MIN_LEAD * second else None


def _shares(words: list[str], prose: str, languages: tuple[str, ...]) -> Mapping[str, float]:
    """Language → share of words that are among its commonest; letters that only one has count as words."""
    times = Counter(words)
    folded = prose.casefold()
    return {
        name: (
            sum(times[word] for word in COMMON_WORDS[name]) + sum(folded.count(mark) for mark in MARKS.get(name, ""))
        )
        / len(words)
        for name in languages
    }
