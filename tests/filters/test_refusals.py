from __future__ import annotations

import pytest

from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.errors import UsageError
from turnmill.filters import filters
from turnmill.options import Filter
from turnmill.verbs.filter import settled

REFUSE = [
    "I'm sorry, but I can't help with that.",
    "I’m sorry, I cannot assist you with this request.",
    "  Sorry, but I won't write that kind of content.",
    "I am unable to provide information on how to pick a lock.",
    "Unfortunately, I can't fulfill your request. Here is why: …",
    "As an AI language model, I cannot provide instructions for that.",
    "I must decline this request.",
    "I'm not able to help with that.",
    "Es tut mir leid, aber dabei kann ich dir nicht helfen.",
    "Leider kann ich diese Anfrage nicht beantworten.",
    "Je suis désolé, mais je ne peux pas vous aider à faire cela.",
    "Désolée, je ne peux pas répondre à cette question.",
    "Lo siento, pero no puedo ayudarte con eso.",
    "Lamentablemente, no puedo proporcionar instrucciones para eso.",
    "很抱歉，我无法帮助您完成这项任务。",
    "对不起，作为一个人工智能，我不能提供这方面的内容。",
    "申し訳ありませんが、そのご要望にはお応えできません。",
    "申し訳ございません。その情報を提供することはできません。",
]
KEEP = [
    "I'm sorry to hear that you are ill. Drink tea.",
    "I can't help but admire the view.",
    "I cannot recommend this book enough.",
    "The rule says: I'm sorry, but I can't help with that.",
    "Sorry, I can't come tonight, said Ann.",
    "Unfortunately, the museum is closed on Mondays.",
    "You can't provide information on others without their consent.",
    "I won't be long, wrote the soldier to his wife.",
    "Es tut mir leid, dass du krank bist.",
    "Leider regnet es morgen.",
    "Je suis désolé pour ce retard; voici le rapport.",
    "Lo siento mucho por tu pérdida.",
    "很抱歉听到这个消息。您可以这样做：",
    "我不能告诉你我有多高兴！",
    "申し訳ありませんが、と彼は言った。",
    "そのご質問にお答えできます。",
]


@pytest.mark.parametrize("answer", REFUSE)
def test_an_answer_that_begins_as_a_refusal_leaves(refused, answer):
    fault = refused("refusals", answer)
    assert (fault.code, fault.at) == ("refusals", 1)


@pytest.mark.parametrize("answer", KEEP)
def test_an_answer_that_answers_stays(refused, answer):
    assert refused("refusals", answer) is None


def test_only_the_chosen_languages_are_looked_for(refused):
    german, english = REFUSE[8], REFUSE[0]
    assert [bool(refused("refusals", text, languages=("de",))) for text in (german, english)] == [True, False]


def test_own_phrases_come_inline_and_from_files(refused, write):
    path = write("mine.txt", "# how our bot says no\n+ oh dear,\nI'd {rather|sooner} not\n")
    own = {"phrases": ("computer says no",), "files": (str(path),)}
    said = ["Computer says NO.", "Oh dear,  I'd sooner not do it.", "I'd rather nothing were said."]
    assert [bool(refused("refusals", text, **own)) for text in said] == [True, True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"languages": ("xx",)}, "unknown language of phrase lists 'xx'"),
        ({"files": ("nowhere.txt",)}, "cannot read the phrases of 'nowhere.txt'"),
        ({"phrases": ("I {can",)}, "braces of the phrase"),
        ({"phrases": ("I am {name}",)}, "stands for nothing"),
    ],
)
def test_wrong_options_are_said(refused, options, message):
    with pytest.raises(UsageError, match=message):
        refused("refusals", "a", **options)


def test_what_is_not_learned_is_not_looked_at():
    untrained = Message("assistant", REFUSE[0], "final", weight=0.0)
    row = check(
        Conversation((Message("user", "q"), untrained, Message("user", "r"), Message("assistant", "a", "final")))
    )
    assert filters.get("refusals")(row, settled(Filter(use=("refusals",)))) is None
