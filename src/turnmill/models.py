"""The only reader of a model directory: tokenizer, chat templates, special tokens, stop tokens, context length.

Precedence is that of transformers: `chat_template.jinja` before `tokenizer_config.json` (a text, or a list of named
ones), `additional_chat_templates/*.jinja` beside either, `chat_template.json` where there is nothing else; special
tokens of `special_tokens_map.json` only where `tokenizer_config.json` has no `added_tokens_decoder`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnmill import smollm2
from turnmill.errors import UnknownName, UsageError
from turnmill.options import Model
from turnmill.stops import stops_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

OWN_TEMPLATES = Path(__file__).parent / "render" / "templates"
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


@dataclass(frozen=True)
class LoadedModel:
    """What turnmill knows of a model; of a bare template, what it knows without one."""

    name: str
    """As it was asked for."""
    template: str
    """Jinja source of the template in use."""
    template_origin: str
    """Where that came from, in words."""
    special_tokens: dict[str, str]
    """Variables of the template: `bos_token`, `eos_token`, and every other named one."""
    eos: frozenset[str]
    """The tokens at which generation ends."""
    eos_origin: str
    templates: dict[str, str] = field(default_factory=dict)
    """The model's own templates by name."""
    tokenizer_path: Path | None = None
    """`tokenizer.json`; None for a bare template."""
    added_tokens: tuple[AddedToken, ...] = ()
    added_before: tuple[str, ...] = ()
    """Tokens that the tokenizer puts before a plain text (its BOS, where it adds one)."""
    added_after: tuple[str, ...] = ()
    """Tokens that the tokenizer puts after a plain text."""
    context_tokens: int | None = None
    """How many tokens the model can see, None where nothing says so."""

    @cached_property
    def tokenizer_sha256(self) -> str | None:
        """Hash of `tokenizer.json` (64 hex digits), None for a bare template."""
        path = self.tokenizer_path
        return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()

    def tokenizer(self) -> Tokenizer:
        """The tokenizer, loaded anew.

        Raises:
            UsageError: there is none, or `tokenizer.json` is none.
        """
        from tokenizers import Tokenizer

        if self.tokenizer_path is None:
            raise UsageError(f"{self.name} is a template without a tokenizer; tokens need a model (--model DIR)")
        try:
            return Tokenizer.from_file(str(self.tokenizer_path))
        except Exception as error:  # the Rust side raises bare Exception for whatever it cannot read
            raise UsageError(f"cannot load {str(self.tokenizer_path)!r}: {error}") from error


def open_model(model: Model) -> LoadedModel:
    """The model that `--model` and `--template` name.

    Raises:
        UsageError: no such directory, no template, no `tokenizer.json`, or a file that is not what it should be.
    """
    if model.name_or_path is None:
        if model.template is None:
            message = "no model given: expected --model DIR, --model smollm2, or --template FILE for text alone"
            raise UsageError(message, next_step="--model smollm2")
        return open_template(model.template, model.special_tokens)
    directory = _directory(model.name_or_path)
    files = _Files(directory)
    templates = dict(files.templates())
    template, origin = _chosen_template(model, templates, files)
    special_tokens = {**files.special_tokens(), **model.special_tokens}
    eos, eos_origin = files.eos(special_tokens)
    own_eos = {model.special_tokens["eos_token"]} if "eos_token" in model.special_tokens else set()
    before, after = _added_around(files.tokenizer.post_processor)
    return LoadedModel(
        name=model.name_or_path,
        template=template,
        template_origin=origin,
        special_tokens=special_tokens,
        eos=eos | own_eos,
        eos_origin=eos_origin,
        templates=templates,
        tokenizer_path=files.tokenizer_path,
        added_tokens=tuple(files.tokenizer.added_tokens),
        added_before=before,
        added_after=after,
        context_tokens=files.context_tokens(),
    )


def open_template(name_or_path: str, special_tokens: Mapping[str, str] | None = None) -> LoadedModel:
    """A template without a model: one of turnmill's own by name, or a Jinja file. It has no tokenizer.

    The stop tokens come from `turnmill.stops`.

    Raises:
        UsageError: no such template.
    """
    template, origin = _template_by_name(name_or_path, {})
    variables = dict(special_tokens or {})
    stops = stops_of(template, variables.get("eos_token"))
    return LoadedModel(
        name=name_or_path,
        template=template,
        template_origin=origin,
        special_tokens=variables,
        eos=stops.tokens,
        eos_origin=stops.source,
    )


def own_templates() -> list[str]:
    """Names of turnmill's own templates, sorted."""
    return sorted(path.stem for path in OWN_TEMPLATES.glob("*.jinja"))


def _directory(name: str) -> Path:
    if name == smollm2.NAME:
        return smollm2.model_directory()
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_file():
        raise UsageError(f"{name!r} is a file, expected a model directory", next_step=f"--template {name}")
    parent = path.parent
    beside = [str(parent / entry.name) for entry in parent.iterdir() if entry.is_dir()] if parent.is_dir() else []
    near = difflib.get_close_matches(str(path), [*beside, smollm2.NAME], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    looks_like_hub = name.count("/") == 1 and not name.startswith((".", "/", "~"))
    nearest = f"--model {near[0] if near else smollm2.NAME}"
    next_step = f"hf download {name} --local-dir {path.name}" if looks_like_hub and not near else nearest
    message = f"no such model directory: {name!r}.{hint} Expected a directory with tokenizer.json, or {smollm2.NAME!r}."
    raise UsageError(message, next_step=next_step)


def _chosen_template(model: Model, templates: dict[str, str], files: _Files) -> tuple[str, str]:
    if model.template is not None:
        return _template_by_name(model.template, templates)
    if model.name_or_path == smollm2.NAME:
        return _template_by_name(smollm2.TEMPLATE, {})
    if "default" in templates:
        return templates["default"], files.template_origin
    if templates:
        message = f"{model.name_or_path} has several chat templates and no default: {', '.join(sorted(templates))}"
        raise UsageError(message, next_step=f"--template {min(templates)}")
    message = (
        f"{model.name_or_path} has no chat template (neither chat_template.jinja nor in tokenizer_config.json): "
        "name a file with --template FILE, or one of turnmill's own"
    )
    raise UsageError(message, next_step="--template chatml")


def _template_by_name(name: str, templates: Mapping[str, str]) -> tuple[str, str]:
    """Source and origin of a template: a named one of the model, one of turnmill's own, or a file."""
    if name in templates:
        return templates[name], f"the model's template {name!r}"
    own = OWN_TEMPLATES / f"{name}.jinja"
    if name.isidentifier() and own.is_file():
        return own.read_text("utf-8"), f"turnmill's own template {name!r}"
    path = Path(name).expanduser()
    if not path.is_file():
        known = [*templates, *own_templates()]
        raise UnknownName("template", name, known, next_step="--template FILE.jinja")
    return _text(path), str(path)


class _TokenizerFile(msgspec.Struct):
    """What is read of `tokenizer.json`."""

    model: msgspec.Raw
    added_tokens: list[AddedToken] = []
    post_processor: Any = None


class _Vocabulary(msgspec.Struct):
    vocab: dict[str, int] | list[Any]


class _Files:
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
            yield self._default(_text(path), "chat_template.jinja")
        for path in sorted((self.directory / "additional_chat_templates").glob("*.jinja")):
            yield path.stem, _text(path)

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
            value = json.loads(_text(path))
        except json.JSONDecodeError as error:
            raise UsageError(f"{str(path)!r} is not valid JSON: {error}") from error
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


def _tokenizer_file(path: Path) -> _TokenizerFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_TokenizerFile)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {str(path)!r}: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {str(path)!r}: {error}") from error


def _added_around(post_processor: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a tokenizer's post-processor puts before and after a single text."""
    kind = (post_processor or {}).get("type")
    if kind == "Sequence":
        around = [_added_around(part) for part in post_processor["processors"]]
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
