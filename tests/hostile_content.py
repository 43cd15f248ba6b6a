"""Contents that templates, masks and replays go wrong on, drawn by a seed into conversations of a given shape."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec

from turnmill.conversation import FUNCTIONS, Conversation, Message

BITS = (
    "a", "Hello world", " ", "\n", "\n\n", "<think>", "</think>", "x</think>y", "<think>\n\n</think>\n\n", "<|im_end|>",
    "<|im_start|>assistant\n", "<tool_response>", "</tool_response>", "<tool_call>", "é", "世界", "👩‍👩‍👧", "{", "}",
    "{{ x }}", "{% if %}", "[INST]", "[/INST]", "<s>", "</s>", "'", '"', "\\", "\t", " lead", "trail ", "0", "None",
    "true", "```json\n{}\n```", "<|channel|>final<|message|>", "<|start|>", "/no_think", "<start_of_turn>", "A" * 50,
    "system", "[TOOL_CALLS]", "<|eot_id|>", "\u2028", "\x00", "image", "<image>", "\r\n",
)  # fmt: skip


class Contents:
    """Draws contents.

    Args:
        seed: of the draws.
    """

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def text(self, empty: float = 0.05) -> str:
        """A text of a few bits; empty that often."""
        if self._draw.random() < empty:
            return ""
        return "".join(self._draw.choice(BITS) for _ in range(self._draw.randint(1, 4)))

    def value(self, depth: int = 0) -> Any:
        """A value of JSON."""
        kind = self._draw.random()
        if kind < 0.5:
            return self.text(0.1)
        if kind < 0.65:
            return self._draw.choice([True, False, None, 1.5, 0, -0.0, self._draw.randint(-3, 3)])
        if depth < 2 and kind < 0.8:
            return [self.value(depth + 1) for _ in range(self._draw.randint(0, 2))]
        if depth < 2:
            return {self._draw.choice(["k", "x y", "type"]): self.value(depth + 1)}
        return "z"

    def arguments(self) -> str:
        """A call's arguments, as JSON text."""
        names = self._draw.sample(["city", "unit", "q", "content"], self._draw.randint(0, 3))
        return json.dumps({name: self.value() for name in names}, ensure_ascii=False)

    def tool(self, tool: Any) -> Any:
        """A tool's definition with other descriptions and parameters."""
        made = json.loads(json.dumps(tool))
        function = made.get("function", made)
        function["description"] = self.text()
        if self._draw.random() < 0.2:
            function["parameters"] = json.loads(self.arguments())
        return made

    def into(self, conversation: Conversation) -> Conversation:
        """A conversation of the same shape."""
        name = self._draw.choice(["find_weather", "python", "look.up", "x", "browser:search-1"])
        messages = tuple(self._message(message, name) for message in conversation.messages)
        tools = tuple(map(self.tool, conversation.tools))
        return msgspec.structs.replace(conversation, messages=messages, tools=tools)

    def _message(self, message: Message, name: str) -> Message:
        if message.is_call:
            return msgspec.structs.replace(message, text=self.arguments(), recipient=f"{FUNCTIONS}{name}")
        if message.role == "tool":
            return msgspec.structs.replace(message, text=self.text(), name=f"{FUNCTIONS}{name}")
        return msgspec.structs.replace(message, text=self.text())
