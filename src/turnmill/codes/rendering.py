"""Codes of rows that the model's template cannot say, or that do not fit."""

from __future__ import annotations

from turnmill.codes.code import Code

RENDERING: dict[str, Code] = {
    "content-lost": Code(
        "render",
        "The template leaves out a text, a reasoning, or a part of a call.",
        "A message with text and a tool call, under a template that prints one or the other (Llama 3.1).",
        "Look at `turnmill template check MODEL`; choose another template with `--template`, or drop such rows.",
    ),
    "control-token-in-text": Code(
        "render",
        "Content holds the text of a control token, and `render.control_tokens` is `reject`.",
        '{"role": "user", "content": "What does <|im_end|> mean?"}',
        "Use `escape` (the default): the text is then encoded as plain text.",
    ),
    "control-token-unescapable": Code(
        "render",
        "Control-token text that cannot be told from the template's: in an author's name, in a template argument, or "
        "because the vocabulary spells it in no other way; or the one mark that turnmill keeps for itself.",
        '{"role": "user", "name": "<|im_end|>", "content": "hi"}',
        "Change the name or the argument.",
    ),
    "reasoning-unsayable": Code(
        "render",
        "The template cannot say reasoning, and the row has no recorded text with a think block to fall back on.",
        '{"role": "assistant", "reasoning_content": "2 and 2", "content": "4"}, under Qwen2.5',
        "Use a template that says reasoning (`--template chatml`).",
    ),
    "render-differs": Code(
        "render",
        "The text rendered with provenance is not the template's own text, so its spans are not known.",
        "A template that escapes HTML in a text.",
        "Report the template; use another with `--template`.",
    ),
    "text-holds-control-tokens": Code(
        "render",
        "A raw text holds the text of a control token, and its source does not say what to do with such.",
        '{"text": "How ChatML ends a turn: <|im_end|>"}',
        "`control_tokens: escape` of the source encodes it as plain text; `keep` keeps the token, for texts that were "
        "rendered on purpose.",
    ),
    "template-limit": Code(
        "render",
        "The template loops or grows beyond its bounds on this row.",
        "A template with an endless loop.",
        "Check the template file: it may be damaged or hostile.",
    ),
    "template-raises": Code(
        "render",
        "The template fails on this row.",
        "A template that adds None to a text.",
        "Look at `turnmill template check MODEL`; choose another template with `--template`.",
    ),
    "template-refuses": Code(
        "render",
        "The template refuses this row in words of its own.",
        "A system message under Gemma's first template.",
        "Drop such rows, or choose a template that says them.",
    ),
    "turn-not-representable": Code(
        "render",
        "A turn's parts stand in an order that no template keeps: templates print reasoning, text, calls.",
        "commentary, analysis, call in one turn",
        "Split the turn, or put its reasoning first.",
    ),
    "turns-overlap": Code(
        "render",
        "The template writes one message inside another, so their texts cannot be told apart.",
        "A template that prints the turns in another order.",
        "Report the template; use another with `--template`.",
    ),
    "writers-mixed": Code(
        "render",
        "The template makes one text of several messages in a way that hides who wrote which part.",
        "`'%s %s' % (messages[0].content, messages[1].content)`",
        "Report the template; use another with `--template`.",
    ),
    "spans-unknown": Code(
        "render",
        "The template's text cannot be tracked, and what tells its turns apart fails on this row.",
        "A template that shows an earlier turn otherwise once a further message follows.",
        "Report the template; use another with `--template`.",
    ),
    "no-trainable-tokens": Code(
        "tokenize",
        "Nothing of the row trains under its weights and the loss options.",
        '{"role": "assistant", "content": "hi", "weight": 0}',
        "Leave the row out, or change its weights.",
    ),
    "far-too-long": Code(
        "fit",
        "The conversation is over 16 times as long as `fit.max_tokens`.",
        "A log of 100,000 tokens at a limit of 4,096.",
        "Cut the recording, or raise `--max-tokens`.",
    ),
    "first-turn-too-long": Code(
        "fit",
        "The first trained turn ends beyond `fit.max_tokens`, so nothing whole is left to keep.",
        "A prompt of 5,000 tokens at a limit of 4,096.",
        "Raise `--max-tokens`.",
    ),
    "too-long": Code(
        "fit",
        "The example is longer than `fit.max_tokens`, and cutting is off or would take its only trained turn.",
        "5,000 tokens at a limit of 4,096 with `fit.overflow: drop`.",
        "Raise `--max-tokens`, or use `fit.overflow: cut`.",
    ),
}
