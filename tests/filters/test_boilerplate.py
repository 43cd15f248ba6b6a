from __future__ import annotations

import pytest

LEAVES = [
    "As an AI language model, I do not have feelings. But …",
    "Good question! As an AI, I don't eat.",
    "The sky is blue.\nI am just an AI assistant, so I cannot see it.",
    "My knowledge cutoff is September 2021.",
    "Here you are.\nRegenerate response",
    "Copy code\nprint(1)",
    "Als KI-Sprachmodell habe ich keine Gefühle.",
    "Das ist schwer. Da ich nur ein Sprachmodell bin, kann ich nicht riechen.",
    "En tant qu'IA, je n'ai pas d'opinion.",
    "Como modelo de lenguaje, no tengo opiniones.",
    "作为一个人工智能语言模型，我没有感情。",
    "好的。我只是一个AI，没有味觉。",
    "AIとして、私は感情を持ちません。",
    "私は単なるAIです。",
]
STAYS = [
    "As an AI language model, GPT-3 predicts the next token.",
    "As a language model grows, its loss falls.",
    "An AI assistant can help you; as an AI assistant, it reads mail.",
    "Write a bot that prints `As an AI language model, I am sorry`.",
    "```\nAs an AI, I am code.\n```\nThat prints a line.",
    "He said 'As an AI language model, I cannot' in the play.",
    "Press Copy code to take it over.",
    "The training data ends in 2019.",
    "Als Modell habe ich oft in Paris gearbeitet.",
    "En tant que mère, je comprends.",
    "Como médico, no tengo dudas.",
    "作为一个母亲，我很高兴。",
    "人工智能语言模型可以写诗。",
    "AIとして知られる技術です。",
]


@pytest.mark.parametrize("answer", LEAVES)
def test_machine_talk_leaves(refused, answer):
    assert refused("boilerplate", answer).code == "boilerplate"


@pytest.mark.parametrize("answer", STAYS)
def test_talk_of_machines_stays(refused, answer):
    assert refused("boilerplate", answer) is None


def test_own_phrases_begin_a_sentence_or_are_a_line(refused):
    own = {"phrases": ("hope this helps", "= the end"), "languages": ()}
    said = ["It is 4. Hope this helps!", "It is 4.\n\nThe End\n", "I hope this helps", "The end is near."]
    assert [bool(refused("boilerplate", text, **own)) for text in said] == [True, True, False, False]
