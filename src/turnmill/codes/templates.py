"""Codes of chat templates that render, but trained on would teach a model the wrong thing."""

from __future__ import annotations

from turnmill.codes.code import Code

TEMPLATES: dict[str, Code] = {
    "turn-marker-not-a-token": Code(
        "template",
        "What opens or ends a turn is plain text in this vocabulary: a model learns to spell it, and never to stop.",
        "`<start_of_turn>` and `<end_of_turn>` (Gemma 2 and 3) with the vocabulary of Gemma 4, which has `<|turn>` and "
        "`<turn|>`",
        "Use the model's own template, or add the tokens to the tokenizer and to the model.",
    ),
    "stop-not-in-eos": Code(
        "template",
        "A turn ends with a token at which generation does not end.",
        "`<|im_end|>` ends turns, and `eos_token_id` names `<|endoftext|>` alone",
        "Add the token to `eos_token_id` in the model's `generation_config.json`, or name it: "
        '`--special-tokens \'{"eos_token": "TOKEN"}\'`.',
    ),
    "turn-without-stop": Code(
        "template",
        "The template ends its turns with no token, so a model never learns to stop.",
        "{{ 'User: ' + message.content + '\\n' }}",
        "Use another template with `--template`.",
    ),
    "generation-prompt-differs": Code(
        "template",
        "What opens a turn is not what the generation prompt holds, so where the model's own text begins is not known.",
        "turns open with `<|model|>`, the generation prompt is `<|assistant|>`",
        "Use another template with `--template`.",
    ),
    "spans-uncertain": Code(
        "template",
        "Two witnesses say otherwise of who wrote what.",
        "a template that prints the turns in another order",
        "Report the template; use another with `--template`.",
    ),
}
