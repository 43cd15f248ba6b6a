"""What turnmill knows of a model: tokenizer, chat template, special tokens, stop tokens, context length."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from turnmill import smollm2
from turnmill.errors import UnknownName, UsageError, shell_word
from turnmill.model_directory import AddedToken, ModelFiles, added_around, read_text
from turnmill.options import Model
from turnmill.stops import stops_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ADDED_TOKEN_FLAGS = ("special", "normalized", "lstrip", "rstrip", "single_word")
OWN_TEMPLATES = Path(__file__).parent / "rendering" / "templates"


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
    """Tokens that are found in text as a whole, whatever the vocabulary says."""
    declared_tokens: tuple[AddedToken, ...] = ()
    """Those of them that stand in `tokenizer_config.json` alone."""
    added_before: tuple[str, ...] = ()
    """Tokens that the tokenizer puts before a plain text (its BOS, where it adds one)."""
    added_after: tuple[str, ...] = ()
    """Tokens that the tokenizer puts after a plain text."""
    context_tokens: int | None = None
    """How many tokens the model can see, None where nothing says so."""

    @property
    def end_token(self) -> str | None:
        """What a raw text ends with: `eos_token`, or the one token at which generation ends; None where neither is."""
        named = self.special_tokens.get("eos_token")
        return named or (next(iter(self.eos)) if len(self.eos) == 1 else None)

    @cached_property
    def tokenizer_sha256(self) -> str | None:
        """Hash of `tokenizer.json` and the declared tokens (64 hex digits), None for a bare template."""
        if self.tokenizer_path is None:
            return None
        content = hashlib.sha256(self.tokenizer_path.read_bytes())
        if self.declared_tokens:
            content.update(msgspec.json.encode(self.declared_tokens))
        return content.hexdigest()

    def tokenizer(self) -> Tokenizer:
        """The tokenizer as transformers would use it, loaded anew: without stored truncation or padding.

        Raises:
            UsageError: there is none, or `tokenizer.json` is none.
        """
        import tokenizers

        if self.tokenizer_path is None:
            raise UsageError(f"{self.name} is a template without a tokenizer; tokens need a model (--model DIR)")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(self.tokenizer_path))
        except Exception as error:  # the Rust side raises bare Exception for whatever it cannot read
            raise UsageError(f"cannot load {str(self.tokenizer_path)!r}: {error}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        for token in self.declared_tokens:
            flags = {name: getattr(token, name) for name in ADDED_TOKEN_FLAGS}
            tokenizer.add_tokens([tokenizers.AddedToken(token.content, **flags)])
        return tokenizer


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
    files = ModelFiles(directory)
    templates = dict(files.templates())
    template, origin = _chosen_template(model, templates, files)
    special_tokens = {**files.special_tokens(), **model.special_tokens}
    eos, eos_origin = files.eos(special_tokens)
    own_eos = {model.special_tokens["eos_token"]} if "eos_token" in model.special_tokens else set()
    before, after = added_around(files.tokenizer.post_processor)
    declared = files.declared_tokens()
    added = {token.id: token for token in (*files.tokenizer.added_tokens, *declared)}
    return LoadedModel(
        name=model.name_or_path,
        template=template,
        template_origin=origin,
        special_tokens=special_tokens,
        eos=eos | own_eos,
        eos_origin=eos_origin,
        templates=templates,
        tokenizer_path=files.tokenizer_path,
        added_tokens=tuple(added.values()),
        declared_tokens=tuple(declared),
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
        raise UsageError(f"{name!r} is a file, expected a model directory", next_step=f"--template {shell_word(name)}")
    parent = path.parent
    beside = [str(parent / entry.name) for entry in parent.iterdir() if entry.is_dir()] if parent.is_dir() else []
    near = difflib.get_close_matches(str(path), [*beside, smollm2.NAME], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    looks_like_hub = name.count("/") == 1 and not name.startswith((".", "/", "~"))
    nearest = f"--model {near[0] if near else smollm2.NAME}"
    next_step = f"hf download {name} --local-dir {path.name}" if looks_like_hub and not near else nearest
    message = f"no such model directory: {name!r}.{hint} Expected a directory with tokenizer.json, or {smollm2.NAME!r}."
    raise UsageError(message, next_step=next_step)


def _chosen_template(model: Model, templates: dict[str, str], files: ModelFiles) -> tuple[str, str]:
    if model.template is not None:
        return _template_by_name(model.template, templates)
    if model.name_or_path == smollm2.NAME:
        return _template_by_name(smollm2.TEMPLATE, {})
    if "default" in templates:
        return templates["default"], files.template_origin
    if templates:
        message = f"{model.name_or_path} has several chat templates and no default: {', '.join(sorted(templates))}"
        raise UsageError(message, next_step=f"--template {shell_word(min(templates))}")
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
    return read_text(path), str(path)
