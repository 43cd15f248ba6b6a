from __future__ import annotations

import pytest

LEAKS = [
    "I am ChatGPT, a large language model.",
    "Hello! I'm Qwen, how can I help?",
    "I'm Claude, an AI assistant made by Anthropic.",
    "As ChatGPT, I can help you.",
    "I was developed by OpenAI.",
    "I'm a large language model, trained by Google.",
    "As an AI model trained by OpenAI, I know little of that.",
    "Ich bin ChatGPT.",
    "Ich wurde von OpenAI entwickelt.",
    "Je suis un modèle de langage développé par Mistral AI.",
    "Soy un modelo de lenguaje entrenado por OpenAI.",
    "我是通义千问，由阿里云开发。",
    "我是由百度训练的语言模型。",
    "私はChatGPTです。",
    "私はOpenAIによって開発されました。",
]
FINE = [
    "ChatGPT was developed by OpenAI in 2022.",
    "GPT-4 is a model; Claude is another, made by Anthropic.",
    "I'm Claude, a baker from Lyon.",
    "I am Gemini, born in June.",
    "As ChatGPT became popular, people worried.",
    "As an AI model trained by Google, Gemini reads images.",
    "I was trained by a good coach.",
    "I use Google every day, and I was at Microsoft once.",
    "Write `I am ChatGPT` into the file.",
    "I am an AI assistant developed by {{author}}.",
    "Ich bin Bing noch nie begegnet.",
    "Je suis Claude, le boulanger.",
    "阿里云开发了通义千问。",
    "我是小明，来自北京。",
    "OpenAIが開発したモデルです。",
]


@pytest.mark.parametrize("answer", LEAKS)
def test_a_model_that_names_itself_leaves(refused, answer):
    assert refused("product-names", answer).code == "product-names"


@pytest.mark.parametrize("answer", FINE)
def test_talk_of_products_stays(refused, answer):
    assert refused("product-names", answer) is None


@pytest.mark.parametrize(
    ("options", "leaves"),
    [
        ({}, [True, False, False]),
        ({"allow": ("Qwen",)}, [False, False, False]),
        ({"names": ("Tidebot",)}, [True, True, False]),
        ({"ambiguous": ("Tide",)}, [True, False, True]),
        ({"phrases": ("this is {name} speaking",), "names": ("Tidebot",), "languages": ()}, [False, False, False]),
    ],
)
def test_names_are_added_and_allowed(refused, options, leaves):
    said = ["I'm Qwen.", "I am Tidebot, hello.", "I'm Tide, an AI."]
    assert [bool(refused("product-names", text, **options)) for text in said] == leaves
