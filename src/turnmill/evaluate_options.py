"""The section `evaluate` of the config, as `turnmill.options` gives it to verbs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class EvalSource:
    """One named set of held-out rows."""

    name: str
    """What its losses are called (`eval/NAME/loss`)."""
    data: tuple[str, ...]
    """Files, directories, globs or URLs of raw rows; or a prepared folder, whose held-out rows are meant."""
    dialect: str = "auto"
    """How its records say a chat."""
    mode: Literal["sft", "text"] = "sft"
    """`sft`: chats, as they train; `text`: raw texts, every token of which counts, with no template."""
    weight: float = 1.0
    """Share in `eval/loss`, beside the other sets'; 0: only watched."""
    samples: int | None = None
    """Rows that are drawn of it; default `evaluate.samples`."""
    regression_floor: float | None = None
    """A loss above it is an alarm; default `evaluate.regression_floor`."""
    optional: bool = False
    """Go on where it cannot be scored: it is named as missing, and the weights of the others are renormalised."""
    columns: dict[str, str] = field(default_factory=dict)
    """Our column → the record's."""
    repairs: tuple[str, ...] = ()
    """Mends made before its rows are checked, in order (`turnmill list repairs`)."""
    loss: dict[str, Any] = field(default_factory=dict)
    """Overrides of the options by which its rows are masked."""
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    """Template arguments of rows that record none."""


@dataclass(frozen=True, slots=True)
class Evaluate:
    """What held-out rows cost a model."""

    eval_dataset: str | None = None
    """Held-out rows, raw or a prepared folder, as one set a source; default those that `split` held out."""
    eval_sources: tuple[EvalSource, ...] = ()
    """Named sets of held-out rows, each with its share in `eval/loss`; in place of `eval_dataset`."""
    samples: int | None = None
    """Rows that are drawn of each set, by seed and id; default all."""
    regression_floor: float | None = None
    """A set's loss above it is an alarm."""
    regression_rise: float = 0.1
    """Nats a token: a set whose loss lies so much above that of the baseline, and by more than two standard errors, is
    an alarm."""
    battery: bool = False
    """Also score the regression battery: small sets of everyday skills that a training may cost."""
    observations: bool = False
    """Also score what tools said, apart from the loss."""
    entropy: bool = True
    """Also take the entropy of the distribution each token is predicted with."""
    packing: Literal["auto", "on", "off"] = "auto"
    """Examples in one row, where the model was found to keep them apart; `auto`: on a GPU."""
    max_batch_tokens: int | None = None
    """Rows times the longest of a batch; default 16,384 on a GPU, 512 on a CPU."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of the weights; `auto`: bfloat16 on a GPU, else float32."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`; `auto`: a GPU where there is one."""
    attention: str = "auto"
    """As transformers names it (`sdpa`, `eager`, `flash_attention_2`); `auto`: its own choice."""
    threads: int | None = None
    """Of a CPU; default: as many as torch takes."""
