"""Small conversations that ask a template what it can say; every text is a word found nowhere else."""

from __future__ import annotations

from turnmill.conversation import FUNCTIONS, Conversation, Message, recorded_json

WEATHER = {
    "type": "function",
    "function": {
        "name": "find_weather",
        "description": "Weatherdescription",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Citydescription"}},
            "required": ["city"],
        },
    },
}

Line = tuple[str, ...]
"""(what, text): what is system, developer, user, reasoning, commentary, answer, call or result."""

SAMPLES: dict[str, tuple[Line, ...]] = {
    "one turn": (("user", "Questionone"), ("answer", "Answerone")),
    "two turns": (("user", "Questionone"), ("answer", "Answerone"), ("user", "Questiontwo"), ("answer", "Answertwo")),
    "system message": (("system", "Systemone"), ("user", "Questionone"), ("answer", "Answerone")),
    "several system messages": (
        ("system", "Systemone"), ("system", "Systemtwo"), ("user", "Questionone"), ("answer", "Answerone"),
    ),
    "developer message": (("developer", "Developerone"), ("user", "Questionone"), ("answer", "Answerone")),
    "reasoning": (("user", "Questionone"), ("reasoning", "Reasonone"), ("answer", "Answerone")),
    "reasoning in an earlier turn": (
        ("user", "Questionone"), ("reasoning", "Reasonone"), ("answer", "Answerone"),
        ("user", "Questiontwo"), ("reasoning", "Reasontwo"), ("answer", "Answertwo"),
    ),
    "tool call": (
        ("user", "Questionone"), ("call", "Cityone"), ("result", "Resultone"), ("answer", "Answerone"),
    ),
    "unanswered tool call": (("user", "Questionone"), ("call", "Cityone")),
    "text beside a call": (
        ("user", "Questionone"), ("commentary", "Commentone"), ("call", "Cityone"), ("result", "Resultone"),
        ("answer", "Answerone"),
    ),
    "reasoning beside a call": (
        ("user", "Questionone"), ("reasoning", "Reasonone"), ("call", "Cityone"), ("result", "Resultone"),
        ("reasoning", "Reasontwo"), ("answer", "Answerone"),
    ),
    "parallel calls": (
        ("user", "Questionone"), ("call", "Cityone"), ("call", "Citytwo"), ("result", "Resultone"),
        ("result", "Resulttwo"), ("answer", "Answerone"),
    ),
    "calls in several steps": (
        ("user", "Questionone"), ("call", "Cityone"), ("result", "Resultone"), ("call", "Citytwo"),
        ("result", "Resulttwo"), ("answer", "Answerone"), ("user", "Questiontwo"), ("answer", "Answertwo"),
    ),
}  # fmt: skip


def sample(name: str) -> Conversation:
    """The sample of that name; samples with a call define its tool."""
    return conversation(SAMPLES[name])


def conversation(lines: tuple[Line, ...]) -> Conversation:
    """A conversation of (what, text) lines: the texts of one turn are one recorded message."""
    messages: list[Message] = []
    recorded, spoke = -1, ""
    for what, text in lines:
        role = what if what in ("system", "developer", "user") else "tool" if what == "result" else "assistant"
        recorded += not (role == spoke == "assistant")
        spoke = role
        messages.append(_message(what, text, recorded))
    has_calls = any(message.is_call for message in messages)
    return Conversation(tuple(messages), (WEATHER,) if has_calls else ())


def _message(what: str, text: str, recorded: int) -> Message:
    function = f"{FUNCTIONS}find_weather"
    match what:
        case "reasoning":
            return Message("assistant", text, "analysis", recorded=recorded)
        case "commentary":
            return Message("assistant", text, "commentary", recorded=recorded)
        case "answer":
            return Message("assistant", text, "final", recorded=recorded)
        case "call":
            arguments = recorded_json({"city": text})
            return Message("assistant", arguments, "commentary", recipient=function, recorded=recorded)
        case "result":
            return Message("tool", text, "commentary", name=function, recipient="assistant", recorded=recorded)
        case "system" | "developer" | "user":
            return Message(what, text, recorded=recorded)
    raise ValueError(f"a sample line says {what!r}")
