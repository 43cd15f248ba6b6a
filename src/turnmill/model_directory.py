"""The files of a model directory, in every form that they come in.

Precedence is that of transformers: `chat_template.jinja` before `tokenizer_config.json` (a text, or a list of named
ones), `additional_chat_templates/*.jinja` beside either, `chat_template.json` where there is nothing else; special
tokens of `special_tokens_map.json` only where `tokenizer_config.json` has no `added_tokens_decoder`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from turnmill.errors import UsageError, shell_word

NAMED_SPECIAL_TOKENS = (
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
)  # fmt: skip
"""The variables that every tokenizer gives its template; others end in `_token`, too."""
CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "n_ctx")
MAX_SANE_CONTEXT = 10**9
"""Transformers writes a model_max_length of 10**30 for "unknown"."""
SLOW_TOKENIZERS = ("tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tiktoken.model")


class AddedToken(msgspec.Struct, frozen=True):
    """A token beside the vocabulary, found in text as a whole."""

    id: int
    content: str
    special: bool = False
    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


class _TokenizerFile(msgspec.Struct):
    """What is read of `tokenizer.json`."""

    model: msgspec.Raw
    added_tokens: list[AddedToken] = []
    post_processor: Any = None


class _Vocabulary(msgspec.Struct):
    vocab: dict[str, int] | list[Any]

    def ids(self) -> dict[str, int]:
        """Token → id: Unigram models list [token, score] in order of ids."""
        if isinstance(self.vocab, dict):
            return self.vocab
        return {entry[0]: number for number, entry in enumerate(self.vocab)}


class ModelFiles:
    """The files of one model directory, each read once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tokenizer_path = self._tokenizer_path()
        self.tokenizer = _tokenizer_file(self.tokenizer_path)
        self.tokenizer_config = self._json("tokenizer_config.json")
        self.config = self._json("config.json")
        self.generation_config = self._json("generation_config.json")
        self.template_origin = ""

    def templates(self) -> Iterator[tuple[str, str]]:
        """Name and source of each template; `template_origin` says where the default came from."""
        declared = self.tokenizer_config.get("chat_template")
        if isinstance(declared, str):
            yield self._default(declared, "tokenizer_config.json")
        elif isinstance(declared, list):
            self.template_origin = "tokenizer_config.json"
            yield from ((entry["name"], entry["template"]) for entry in declared)
        elif (legacy := self._json("chat_template.json").get("chat_template")) is not None:
            yield self._default(legacy, "chat_template.json")
        if (path := self.directory / "chat_template.jinja").is_file():
            yield self._default(read_text(path), "chat_template.jinja")
        for path in sorted((self.directory / "additional_chat_templates").glob("*.jinja")):
            yield path.stem, read_text(path)

    def special_tokens(self) -> dict[str, str]:
        """Template variable → token, as transformers gives them to the template."""
        config = dict(self.tokenizer_config)
        if "added_tokens_decoder" not in config:
            config |= self._json("special_tokens_map.json")
        named = dict(_named_tokens(config))
        for key in ("model_specific_special_tokens", "extra_special_tokens"):
            if isinstance(config.get(key), dict):
                named |= {name: _content(token) for name, token in config[key].items()}
        return {name: token for name, token in named.items() if token is not None}

    def declared_tokens(self) -> list[AddedToken]:
        """Tokens that `tokenizer_config.json` adds to those of `tokenizer.json`, or marks otherwise.

        Transformers adds them when it loads the tokenizer: first those of `added_tokens_decoder`, then special tokens
        that are named and no added token yet.
        """
        known = self.tokenizer.added_tokens
        decoder = self.tokenizer_config.get("added_tokens_decoder") or {}
        listed = sorted((_added_token({**token, "id": int(number)}) for number, token in decoder.items()), key=_by_id)
        contents = {token.content for token in (*known, *listed)}
        named = [AddedToken(-1, text, special=True) for text in self._special_contents() if text not in contents]
        added = [*(token for token in listed if token not in known), *named]
        return self._numbered(added) if added else []

    def eos(self, special_tokens: Mapping[str, str]) -> tuple[frozenset[str], str]:
        """The stop tokens as text, and which file says so."""
        nested = self.config.get("text_config") or {}
        for origin, ids in (
            ("generation_config.json", self.generation_config.get("eos_token_id")),
            ("config.json", self.config.get("eos_token_id", nested.get("eos_token_id"))),
        ):
            tokens = self._tokens(ids)
            if tokens:
                return tokens, origin
        token = special_tokens.get("eos_token")
        return (frozenset({token}), "eos_token") if token else (frozenset(), "nothing known")

    def context_tokens(self) -> int | None:
        """Positions of the model, else the tokenizer's sane `model_max_length`."""
        for config in (self.config, self.config.get("text_config") or {}):
            for key in CONTEXT_KEYS:
                if isinstance(config.get(key), int):
                    return int(config[key])
        limit = self.tokenizer_config.get("model_max_length")
        return int(limit) if isinstance(limit, int | float) and limit < MAX_SANE_CONTEXT else None

    def _numbered(self, tokens: list[AddedToken]) -> list[AddedToken]:
        """The tokens with the ids they get when they are added in this order: the known one, else the next free."""
        ids = self._vocabulary() | {token.content: token.id for token in self.tokenizer.added_tokens}
        for token in tokens:
            ids.setdefault(token.content, max(ids.values(), default=-1) + 1)
        return [msgspec.structs.replace(token, id=ids[token.content]) for token in tokens]

    def _special_contents(self) -> list[str]:
        listed = self.tokenizer_config.get("extra_special_tokens") or self.tokenizer_config.get(
            "additional_special_tokens", []
        )
        more = [_content(token) for token in listed] if isinstance(listed, list) else []
        named = [*self.special_tokens().values(), *(token for token in more if token is not None)]
        return list(dict.fromkeys(named))

    def _vocabulary(self) -> dict[str, int]:
        return msgspec.json.decode(self.tokenizer.model, type=_Vocabulary).ids()

    def _default(self, template: str, origin: str) -> tuple[str, str]:
        self.template_origin = origin
        return "default", template

    def _tokens(self, ids: Any) -> frozenset[str]:
        wanted = {ids} if isinstance(ids, int) else set(ids or ())
        found = {token.id: token.content for token in self.tokenizer.added_tokens if token.id in wanted}
        if wanted - found.keys():
            vocabulary = msgspec.json.decode(self.tokenizer.model, type=_Vocabulary).vocab
            pairs = (
                vocabulary.items() if isinstance(vocabulary, dict) else ((e[0], i) for i, e in enumerate(vocabulary))
            )
            found = {number: token for token, number in pairs if number in wanted} | found
        return frozenset(found.values())

    def _tokenizer_path(self) -> Path:
        path = self.directory / "tokenizer.json"
        if path.is_file():
            return path
        slow = [name for name in SLOW_TOKENIZERS if (self.directory / name).is_file()]
        found = f"only {', '.join(slow)}" if slow else "none"
        convert = "from transformers import AutoTokenizer as T; T.from_pretrained('{0}').save_pretrained('{0}')"
        raise UsageError(
            f"{str(self.directory)!r} has no tokenizer.json (found {found})",
            next_step=f'python -c "{convert.format(self.directory)}"' if slow else f"ls {self.directory}",
        )

    def _json(self, name: str) -> dict[str, Any]:
        """A JSON object in the directory, {} where there is no such file."""
        path = self.directory / name
        if not path.is_file():
            return {}
        try:
            value = json.loads(read_text(path))
        except json.JSONDecodeError as error:
            what = f"{str(path)!r} is not valid JSON: {error}"
            raise UsageError(what, next_step=f"python -m json.tool {shell_word(path)}") from error
        if not isinstance(value, dict):
            raise UsageError(f"{str(path)!r} holds a {type(value).__name__}, expected a JSON object")
        return value


def _named_tokens(config: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    for name, token in config.items():
        if name in NAMED_SPECIAL_TOKENS or name.endswith("_token"):
            yield name, _content(token)


def _content(token: Any) -> str | None:
    """Text of a token that a config gives as text or as an object; None for what is no token."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _by_id(token: AddedToken) -> int:
    return token.id


def _added_token(entry: Any) -> AddedToken:
    try:
        return msgspec.convert(entry, AddedToken)
    except msgspec.ValidationError as error:
        raise UsageError(f"added_tokens_decoder of tokenizer_config.json holds no token: {error}") from error


def _tokenizer_file(path: Path) -> _TokenizerFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_TokenizerFile)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {str(path)!r}: {error}") from error


def read_text(path: Path) -> str:
    """A text file's content.

    Raises:
        UsageError: not readable, or not UTF-8.
    """
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {str(path)!r}: {error}") from error


def added_around(post_processor: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a tokenizer's post-processor puts before and after a single text."""
    kind = (post_processor or {}).get("type")
    if kind == "Sequence":
        around = [added_around(part) for part in post_processor["processors"]]
        return next((found for found in around if found != ((), ())), ((), ()))
    if kind in {"BertProcessing", "RobertaProcessing"}:
        return (post_processor["cls"][0],), (post_processor["sep"][0],)
    if kind != "TemplateProcessing":
        return (), ()
    pieces = post_processor["single"]
    at = next((index for index, piece in enumerate(pieces) if "Sequence" in piece), len(pieces))
    tokens = post_processor["special_tokens"]
    before, after = (
        tuple(token for piece in part for token in tokens[piece["SpecialToken"]["id"]]["tokens"])
        for part in (pieces[:at], pieces[at + 1 :])
    )
    return before, after
