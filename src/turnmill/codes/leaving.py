"""Codes of sound rows that leave by a choice of the recipe."""

from __future__ import annotations

from turnmill.codes.code import Code

LEAVING: dict[str, Code] = {
    "source-filtered": Code(
        "convert",
        "A source lets the row go on purpose and says why: it leaves as `filtered`, outside the health limit.",
        "a run whose last answer was cut off at the limit of its tokens",
        "Nothing, or change the source's conversion.",
    ),
    "stalled-tool-call": Code(
        "filter",
        "The assistant makes one call three times in a row and gets the same result.",
        "user, call f, result x, call f, result x, call f",
        "Nothing, or take the filter out of `filter.use` to keep such rows.",
    ),
    "length-bounds": Code(
        "filter",
        "The conversation, or an answer, is shorter or longer than the bounds that were set.",
        "an answer of 4 characters under `filter.length_bounds.min_answer_characters: 20`",
        "Nothing, or change the bounds.",
    ),
    "encoding-damage": Code(
        "filter",
        "A text holds U+FFFD, control characters, or letters that were read in a wrong encoding.",
        '{"role": "user", "content": "Le cafÃ© dâ€™en face"}',
        "Decode the source again from its bytes; such letters cannot be guessed back.",
    ),
    "refusals": Code(
        "filter",
        "An answer begins as a refusal.",
        '{"role": "assistant", "content": "I\'m sorry, but I can\'t help with that."}',
        "Nothing, or take the filter out of `filter.use` where refusing is to be learned.",
    ),
    "boilerplate": Code(
        "filter",
        "An answer speaks of itself as a machine, or holds what a chat page left in it.",
        '{"role": "assistant", "content": "As an AI language model, I do not have opinions. …"}',
        "Nothing, or take the sentence out of the answer.",
    ),
    "product-names": Code(
        "filter",
        "The assistant says that it is a known product, or made by its maker.",
        '{"role": "assistant", "content": "I am ChatGPT, a model trained by OpenAI."}',
        "Nothing, or write your own name; `filter.product_names.allow` admits names.",
    ),
    "repetition-loops": Code(
        "filter",
        "The assistant says the same words many times in a row.",
        "an answer that ends in thirty times `I hope this helps.`",
        "Nothing: the text was made by a model that got stuck.",
    ),
    "language": Code(
        "filter",
        "The answers are clearly in a language that is not kept.",
        "a French answer under `filter.language.keep: [en, de]`",
        "Nothing, or name the language in `filter.language.keep`.",
    ),
    "duplicate": Code(
        "dedup",
        "Another row has the same messages, tools and template arguments.",
        "the same line twice",
        "Nothing: the first row stays; `duplicates/` names it.",
    ),
    "duplicate-other-weights": Code(
        "dedup",
        "Another row has the same messages, but other recorded loss weights; the first row stays.",
        'two equal rows, one with `"weight": 0`',
        "See which weights are meant; put the source that has them first.",
    ),
    "duplicate-first-exchange": Code(
        "dedup",
        "An earlier row has the same first user text and first assistant turn, but for case and white space.",
        "one conversation, recorded twice at different lengths",
        "Nothing, or take `first-exchange` out of `dedup.by`; put the source with the longer rows first.",
    ),
    "near-duplicate": Code(
        "dedup",
        "The texts of an earlier row that stays share most of their word n-grams with this one's.",
        "one answer twice, a word of it changed, under `dedup.by: [exact, near]`",
        "Nothing, or raise `dedup.near.threshold`; `duplicates/` has the row that stays and how similar it is.",
    ),
    "evaluation-overlap": Code(
        "decontaminate",
        "A message shares so many words in a row with an evaluation item as `decontaminate.ngram` says.",
        "a question of a benchmark with its answer, in a row of training data",
        "Nothing; where the shared words are no item's but a frame that all items have, take them out of that file.",
    ),
    "evaluation-item": Code(
        "decontaminate",
        "A message says an evaluation item that is shorter than an n-gram, word for word.",
        "`name the capital of norway`, where an evaluation file asks `Name the capital of Norway.`",
        "Nothing, or take the item out of that file where everybody asks it.",
    ),
    "score-not-finite": Code(
        "select",
        "The scoring model gives the row no finite number.",
        "a row longer than the model's context; a model whose half-precision weights overflow",
        "Look at `scores/`, which has the reason; another `score.dtype` may do.",
    ),
    "perplexity-too-low": Code(
        "select",
        "The scoring model predicts the row nearly word by word.",
        "an answer that repeats the question, under `select.min_perplexity: 1.5`",
        "Nothing, or lower `select.min_perplexity`.",
    ),
    "perplexity-too-high": Code(
        "select",
        "The row is far from anything the scoring model expects.",
        "random letters, or a language the model never saw, under `select.max_perplexity: 500`",
        "Nothing; for data of a new domain `select.max_perplexity: 0` keeps such rows.",
    ),
    "too-few-tokens": Code(
        "select",
        "The rendered row has fewer tokens than `select.min_tokens`.",
        "a row of 8 tokens, template included",
        "Nothing, or lower the bound.",
    ),
    "too-many-tokens": Code(
        "select",
        "The rendered row has more tokens than `select.max_tokens`.",
        "a row of 40,000 tokens",
        "Nothing, or raise the bound.",
    ),
    "not-selected": Code(
        "select",
        "The budget went to other rows.",
        "`select.rows: 1000` of a pool of 5,000",
        "Nothing, or raise the budget.",
    ),
}
