"""Every verb's options, once: the config tree, the command line, `Step.params` and the functions all use these.

A field's docstring is its help; defaults that are computed are None here and printed when they are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from turnmill.evaluate_options import EvalSource, Evaluate
from turnmill.rendered import Loss
from turnmill.train_options import Lora, Train

DEFAULT_THINK_TAGS = ("<think>", "[THINK]", "◁think▷", "<|start_think|>")
"""Openers of a leading think block in an assistant's text; the closer is derived from the opener."""

KEEP_ALL = ("all",)
"""`Read.keep_columns` that keeps every undeclared column."""


@dataclass(frozen=True, slots=True)
class Model:
    """The model whose template and tokenizer the data are made for."""

    name_or_path: str | None = None
    """A model directory, or `smollm2`."""
    template: str | None = None
    """A Jinja file, a named template of the model, or one of turnmill's own (`chatml`), in place of the model's."""
    special_tokens: dict[str, str] = field(default_factory=dict)
    """Special-token variables of the template (`{bos_token: "<s>"}`), over the model's own."""


@dataclass(frozen=True, slots=True)
class Read:
    """How files are read."""

    think_tags: tuple[str, ...] = DEFAULT_THINK_TAGS
    """Openers of a leading think block in an assistant's text."""
    max_record_bytes: int = 64 * 1024 * 1024
    """A record of more bytes is rejected unread."""
    keep_prefix: bool = False
    """Keep the rows before the fault of a broken array or a truncated compressed file, without exit 3."""
    keep_columns: tuple[str, ...] = ()
    """Columns of the records that are kept beside the conversation; none may be named as a column of ours is. `all`:
    every one that no dialect takes, but for those."""


@dataclass(frozen=True, slots=True)
class Health:
    """How many rows a source may lose in read, repair and check."""

    max_rejected: float = 0.05
    """Share of the rows read; more of them ends the run with exit 3 before anything is published."""
    min_rows: int = 20
    """Under so many rows a source only warns."""


@dataclass(frozen=True, slots=True)
class Check:
    """Policies of the chat contract."""

    unanswered_calls: Literal["retain", "reject"] = "retain"
    """A conversation that ends on calls nobody answered."""
    partial_batch: Literal["reject", "trim"] = "reject"
    """A conversation that ends with some of a batch's calls answered; `trim` ends it before the batch."""
    invalid_tool_call: Literal["reject", "retain"] = "reject"
    """A call whose tool has no definition."""
    max_turn_characters: int | None = None
    """A longer user or assistant text is rejected."""
    max_observation_characters: int | None = None
    """A longer tool result is rejected."""


@dataclass(frozen=True, slots=True)
class Source:
    """One named input."""

    name: str
    """What it is called in counts and flags; no two share one."""
    data: tuple[str, ...]
    """Files, directories, globs or `-`."""
    dialect: str = "auto"
    """How its records say a chat (`turnmill list dialects`); `auto` looks at a sample of each file."""
    weight: float | None = None
    """Share of an epoch, beside the other sources' (`mix`); not given: its share of all examples."""
    mode: Literal["chat", "text"] | None = None
    """`text`: its rows are raw texts (dialect `text`), trained on whole and without a template; `chat`: a file of raw
    texts is refused. Not given: its dialect says it."""
    columns: dict[str, str] = field(default_factory=dict)
    """Our column → the record's."""
    tags: dict[str, str] = field(default_factory=dict)
    """Our message key → the record's."""
    roles: dict[str, str] = field(default_factory=dict)
    """The record's speaker → our role."""
    repairs: tuple[str, ...] = ()
    """Mends made before its rows are checked, in order (`turnmill list repairs`); none is made unasked."""
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    """Template arguments of rows that record none."""
    control_tokens: Literal["escape", "reject", "keep"] | None = None
    """Override of `render.control_tokens`; raw texts that hold some are rejected without it."""
    limit: int | None = None
    """Override of `limit`."""
    read: dict[str, Any] = field(default_factory=dict)
    """Overrides of the `read` section, but for `keep_columns`."""
    check: dict[str, Any] = field(default_factory=dict)
    """Overrides of the `check` section."""
    health: dict[str, Any] = field(default_factory=dict)
    """Overrides of the `health` section."""
    filter: dict[str, Any] = field(default_factory=dict)
    """Overrides of the `filter` section."""
    split: dict[str, Any] = field(default_factory=dict)
    """Overrides of the `split` section, but for `per_source`."""
    render: dict[str, Any] = field(default_factory=dict)
    """Overrides of the `render` section."""
    loss: dict[str, Any] = field(default_factory=dict)
    """Overrides of the `loss` section."""
    fit: dict[str, Any] = field(default_factory=dict)
    """Overrides of the `fit` section, but for `max_tokens`."""


PHRASE_LANGUAGES = ("de", "en", "es", "fr", "ja", "zh")
"""Languages that phrase lists are shipped for."""


@dataclass(frozen=True, slots=True)
class LengthBounds:
    """The filter `length-bounds`: how much a conversation says, in characters and assistant turns."""

    min_turns: int | None = None
    """Fewer assistant turns."""
    max_turns: int | None = None
    """More assistant turns."""
    min_characters: int | None = None
    """Fewer characters in all texts together."""
    max_characters: int | None = None
    """More characters in all texts together."""
    min_answer_characters: int | None = None
    """A final answer of fewer characters."""
    max_answer_characters: int | None = None
    """A final answer of more characters."""


@dataclass(frozen=True, slots=True)
class EncodingDamage:
    """The filter `encoding-damage`: what was lost or garbled on the way, in what users and assistants say."""

    min_marks: int = 1
    """So many replacement characters, garbled letters and control characters in one text."""


@dataclass(frozen=True, slots=True)
class Phrases:
    """A filter that looks for phrases in assistants' answers."""

    languages: tuple[str, ...] = PHRASE_LANGUAGES
    """Whose shipped lists are used."""
    phrases: tuple[str, ...] = ()
    """Further phrases; `{a|b}` stands for one of several."""
    files: tuple[str, ...] = ()
    """Files of further phrases, a line each; lines that begin with # are notes."""


@dataclass(frozen=True, slots=True)
class ProductNames:
    """The filter `product-names`: answers in which a model says that it is a product, or whose."""

    languages: tuple[str, ...] = PHRASE_LANGUAGES
    """Whose shipped phrases are used."""
    phrases: tuple[str, ...] = ()
    """Further phrases; `{name}`, `{ambiguous}` and `{maker}` stand for names, `{a|b}` for one of several."""
    names: tuple[str, ...] = ()
    """Further names of models that nothing else is called."""
    ambiguous: tuple[str, ...] = ()
    """Further names of models that people and things are called, too."""
    makers: tuple[str, ...] = ()
    """Further names of makers."""
    allow: tuple[str, ...] = ()
    """Shipped names and makers that are no leak: your own."""


@dataclass(frozen=True, slots=True)
class RepetitionLoops:
    """The filter `repetition-loops`: an assistant's text that says the same again and again without a break."""

    min_repeats: int = 6
    """The same words so many times in a row."""
    min_characters: int = 200
    """They cover so many characters together."""


@dataclass(frozen=True, slots=True)
class Language:
    """The filter `language`: the language of the answers, told by their script and commonest words."""

    keep: tuple[str, ...] = ()
    """Two-letter codes; answers that are clearly in another language let the row go. None: every row stays."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which filters run, and their options by filter."""

    use: tuple[str, ...] = ("stalled-tool-call",)
    """Names of filters (`turnmill list filters`); the first that lets a row go gives its code."""
    length_bounds: LengthBounds = LengthBounds()
    """How much a conversation says."""
    encoding_damage: EncodingDamage = EncodingDamage()
    """What counts as damage."""
    refusals: Phrases = Phrases()
    """Answers that begin with one of these refuse."""
    boilerplate: Phrases = Phrases()
    """Answers in which a sentence begins with one of these."""
    product_names: ProductNames = ProductNames()
    """Whose names are leaks."""
    repetition_loops: RepetitionLoops = RepetitionLoops()
    """What counts as a loop."""
    language: Language = Language()
    """Which languages stay."""


@dataclass(frozen=True, slots=True)
class Near:
    """What counts as a near-duplicate: for `dedup.by: [near]` and `split.near`."""

    threshold: float = 0.8
    """Jaccard similarity of two rows' n-grams of words (shared ones over all) from which on they are near."""
    ngram: int = 3
    """Words of an n-gram; in scripts without spaces every character is a word."""


@dataclass(frozen=True, slots=True)
class Dedup:
    """Which duplicates leave."""

    by: tuple[Literal["exact", "first-exchange", "near"], ...] = ("exact",)
    """`exact`: of rows with the same messages, tools and template arguments the first stays; `first-exchange`: of rows
    whose first user text and first assistant turn are the same but for case and white space; `near`: of rows whose
    texts, but for system prompts, share most n-grams. `[]`: all stay."""
    near: Near = Near()
    """What counts as a near-duplicate."""


@dataclass(frozen=True, slots=True)
class Decontaminate:
    """Which rows leave because evaluation data hold what they say."""

    against: tuple[str, ...] = ()
    """Evaluation data: files, directories, globs or URLs, in any dialect, as other JSON records, or as text, an item a
    line (`.txt`). None: every row stays."""
    ngram: int = 13
    """A row that shares so many words in a row with an evaluation item leaves; a shorter item takes the rows that have
    a message of just its words."""


@dataclass(frozen=True, slots=True)
class Split:
    """Which rows are held out for evaluation."""

    fraction: float = 0.0
    """Share of the prompt groups; a group's side never changes when rows are added."""
    rows: int = 0
    """Groups in key order until at least so many rows are held out; an error where there are not enough."""
    group_field: str | None = None
    """A kept column that names the group, in place of the first user text."""
    per_source: bool = False
    """Hold out of each source on its own."""
    near: bool = False
    """Rows that are near-duplicates, as `dedup.near` says, are held out together or not at all."""


@dataclass(frozen=True, slots=True)
class Render:
    """How a conversation becomes text."""

    template_kwargs: dict[str, Any] = field(default_factory=dict)
    """Template arguments of every row; a row's own and a source's go first."""
    date: str = "2025-01-01"
    """The day the template's clock shows."""
    history: Literal["final", "auto", "per-turn"] = "final"
    """What earlier turns look like to a trained turn: `final`, as the one render of the whole row has them; `auto`, as
    inference would prompt, in as few examples a row as that takes; `per-turn`, an example for each trained turn."""
    control_tokens: Literal["escape", "reject", "keep"] = "escape"
    """Control-token text inside content: encoded as plain text, rejected, or kept as control tokens."""
    on_unsayable: Literal["stop", "drop"] = "stop"
    """When the template cannot say over 5 % of at least 20 rows: exit 3, or only quarantine them."""
    add_stop: bool = True
    """Append the stop token where the template closes the last turn without one."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How long an example may be."""

    max_tokens: int | None = None
    """Tokens; default min(4096, the model's context)."""
    overflow: Literal["cut", "drop", "continue"] = "cut"
    """End at the last whole trained turn that fits; drop the row; or go on in further parts, which show what stands
    before the first user message and the exchange before the cut as untrained context."""


@dataclass(frozen=True, slots=True)
class Score:
    """How well a model already knows each row: the NLL of exactly the tokens that train."""

    on: bool = False
    """Score every row; done unasked where `select.strategy` looks at scores."""
    scorer: str = "hf"
    """Which scorer (`turnmill list scorers`)."""
    model: str | None = None
    """Directory of the scoring model, where it is another than `model.name_or_path`; its tokenizer must be the same."""
    full: bool = False
    """Also sum the NLL of all tokens, whoever wrote them."""
    max_batch_tokens: int | None = None
    """Rows times the longest of a batch; default 16,384 on a GPU, 512 on a CPU, where larger ones are slower."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of the weights; `auto`: bfloat16 on a GPU, else float32."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`; `auto`: a GPU where there is one."""
    attention: str = "auto"
    """Of the scorer `hf`, as transformers names it (`sdpa`, `eager`, `flash_attention_2`); `auto`: its own choice."""
    packing: Literal["auto", "on", "off"] = "auto"
    """Examples in one row, where the scorer `hf` found that the model keeps them apart; `auto`: on a GPU."""
    threads: int | None = None
    """Of the scorer on a CPU; default: as many as its library takes."""
    url: str | None = None
    """Of an endpoint's `/v1`, for the scorer `http`."""
    concurrency: int = 8
    """Requests at once, of the scorer `http`."""
    timeout_s: float = 120.0
    """Seconds that a request may take."""


@dataclass(frozen=True, slots=True)
class Select:
    """Which rows a model learns from."""

    strategy: str = "random"
    """How rows are chosen (`turnmill list strategies`)."""
    rows: int | None = None
    """Budget in rows."""
    tokens: int | None = None
    """Budget in trained tokens."""
    quotas: dict[str, float] = field(default_factory=dict)
    """Group → share of the budget; rows of other groups leave."""
    group_field: str | None = None
    """A kept column that names a row's group; without it a row's group is its source."""
    min_perplexity: float = 1.5
    """Scored rows below leave, held-out ones too."""
    max_perplexity: float = 500.0
    """Scored rows above leave, held-out ones too; 0: none does."""
    perplexity_of: Literal["trained", "full"] = "trained"
    """Whose perplexity these two bound; `full` has all tokens scored."""
    min_tokens: int = 10
    """Scored rows of fewer tokens leave."""
    max_tokens: int = 32_768
    """Scored rows of more tokens leave."""
    control: bool = True
    """Beside any strategy but `random`, also write a random choice of the same size."""


@dataclass(frozen=True, slots=True)
class Mix:
    """How much of each source an epoch has; with no `sources[].weight` every example once."""

    unit: Literal["rows", "tokens", "trained-tokens"] = "rows"
    """What weights are shares of: examples, tokens, or tokens that train."""
    epoch: Literal["total", "first-exhausted"] = "total"
    """An epoch is as large as all sources together, or ends where the first source has been gone through."""
    max_passes: float | None = None
    """Go through a source at most so often in an epoch; the epoch is shorter for it."""
    epochs: int = 1
    """How many epochs' plans are written; readers make further ones."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """How an epoch is estimated."""

    precision: float = 0.005
    """Standard deviation of the tokens, as a share of them, at which no more rows are looked at."""
    exact: bool = False
    """Look at every row."""


@dataclass(frozen=True, slots=True)
class Pack:
    """How examples are laid into rows of `fit.max_tokens`."""

    on: bool = True
    """False: an example a row."""
    order: Literal["random", "kept"] = "random"
    """Packs in seeded random order, or examples in the order they were read."""
    materialise: bool = True
    """Also write `packed/*.parquet` for epoch 0."""


__all__ = [
    "Check", "Decontaminate", "Dedup", "Estimate", "EvalSource", "Evaluate", "Filter", "Fit", "Health", "Lora", "Loss",
    "Mix", "Model", "Near", "Pack", "Read", "Render", "Score", "Select", "Source", "Split", "Train",
]  # fmt: skip
