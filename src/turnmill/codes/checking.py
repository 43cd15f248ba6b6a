"""Codes of conversations that break the chat contract (some are found already when a record is converted)."""

from __future__ import annotations

from turnmill.codes.code import Code

CHECKING: dict[str, Code] = {
    "assistant-after-final": Code(
        "check",
        "The assistant speaks on after its final answer.",
        "user, assistant, assistant",
        "Join the two messages, or leave one out.",
    ),
    "blank-text": Code(
        "check",
        "A user's or assistant's text is empty or white space.",
        '{"role": "assistant", "content": "  "}',
        "Leave the message or the row out.",
    ),
    "call-between-replies": Code(
        "check",
        "A call comes between the results of a batch of calls.",
        "user, call f, call g, result f, call h",
        "Record all results of a batch before the next call.",
    ),
    "calls-unanswered": Code(
        "check",
        "A user speaks, or the conversation ends, while calls wait for results.",
        "user, call f, user",
        "Record the results; at the end of a row `check.unanswered_calls: retain` admits it.",
    ),
    "channel-invalid": Code(
        "check",
        "A message is on a channel that its speaker does not have.",
        'a call on the channel "final"',
        "Assistants have analysis, commentary and final; calls and results are commentary.",
    ),
    "first-turn-not-user": Code(
        "check",
        "The conversation does not open with a user (systems aside).",
        "system, assistant, user, assistant",
        "Restore the prompt, or leave the row out.",
    ),
    "last-turn-not-assistant": Code(
        "check",
        "The conversation ends with a user or a tool's result: there is nothing to learn at its end.",
        "user, assistant, user",
        "Leave the trailing message out.",
    ),
    "no-assistant-turn": Code(
        "check", "No assistant speaks: there is nothing to learn.", "user", "Leave the row out, or add the answer."
    ),
    "no-messages": Code(
        "check",
        "The row has no messages.",
        '{"messages": []}',
        "Map the column that holds them: `columns: {messages: …}`.",
    ),
    "observation-too-long": Code(
        "check",
        "A tool's result is longer than the ceiling.",
        "a pasted web page of 200,000 characters",
        "Raise `check.max_observation_characters`, or shorten the result.",
    ),
    "partial-batch": Code(
        "check",
        "The conversation ends with some of a batch's calls answered.",
        "user, call f, call g, result f",
        "Record all results, or set `check.partial_batch: trim` to end such rows at the answer before.",
    ),
    "recipient-invalid": Code(
        "check",
        "A message is sent to somebody its speaker does not address.",
        "a tool's result sent to the user",
        "Results go to the assistant; systems and users address nobody.",
    ),
    "system-not-first": Code(
        "check",
        "A system or developer message comes after another speaker.",
        "user, assistant, system, user, assistant",
        "Move it to the front; the repair `late-system-to-user` lets the user say it; or leave the row out.",
    ),
    "template-kwargs-invalid": Code(
        "check",
        "The row's template arguments are not an object, of a wrong type, or reserved.",
        '{"chat_template_kwargs": {"enable_thinking": 3}}',
        "Write them as a JSON object; leave out arguments of the rendering call itself.",
    ),
    "text-before-replies": Code(
        "check",
        "The assistant speaks while calls wait for results.",
        "user, call f, assistant, result f",
        "Record the results right after the calls.",
    ),
    "tool-arguments-duplicate-key": Code(
        "check",
        "A call's arguments hold one key twice.",
        r'"arguments": "{\"city\": \"Oslo\", \"city\": \"Rome\"}"',
        "Keep one of the values.",
    ),
    "tool-arguments-non-finite": Code(
        "check",
        "A call's arguments hold NaN or an infinity.",
        r'"arguments": "{\"x\": NaN}"',
        "Write null, or leave the row out.",
    ),
    "tool-arguments-not-json": Code(
        "check",
        "A call's arguments are text that is not JSON.",
        r'"arguments": "{\"city\": \"Os"',
        "Such logs are often cut off; leave the row out.",
    ),
    "tool-arguments-not-object": Code(
        "check",
        "A call's arguments are not a JSON object.",
        '"arguments": [1]',
        'Write them as an object: `{"n": 1}`; a call without arguments has `{}`.',
    ),
    "tool-definition-invalid": Code(
        "check",
        "A tool definition is not an object with a name and an object of parameters.",
        '{"tools": [{"type": "function", "function": {"name": "f"}}]}',
        'Give it `"parameters": {"type": "object", "properties": {}}`.',
    ),
    "tool-name-invalid": Code(
        "check",
        "A tool's name holds something else than letters, digits and `_.:-`.",
        '{"name": "get weather"}',
        "Rename the tool in definitions and calls.",
    ),
    "tool-name-repeated": Code(
        "check",
        "Two tools of a row have one name.",
        '{"tools": [{"name": "f", …}, {"name": "f", …}]}',
        "Keep one definition.",
    ),
    "tool-reply-unmatched": Code(
        "check",
        "A result answers no call that waits for one.",
        '{"role": "tool", "tool_call_id": "b"} after a call "a"',
        "Record results right after their calls, with the ids of the calls.",
    ),
    "tool-undefined": Code(
        "check",
        "A tool is called that the row does not define.",
        'a call to f on a row with `"tools": []`',
        "Map the column of the definitions, `columns: {tools: …}`, or set `check.invalid_tool_call: retain`.",
    ),
    "turn-too-long": Code(
        "check",
        "A user's or assistant's text is longer than the ceiling.",
        "an answer of 200,000 characters",
        "Raise `check.max_turn_characters`, or leave the row out.",
    ),
    "turn-without-answer": Code(
        "check",
        "An assistant's turn ends with reasoning or commentary: neither an answer nor a call.",
        '{"role": "assistant", "reasoning_content": "hm", "content": ""}',
        "Add the answer, or leave the row out.",
    ),
    "user-after-user": Code(
        "check",
        "Two user messages follow one another.",
        "user, user, assistant",
        "Join the two messages, or leave one out.",
    ),
}
