"""Codes of records that no dialect can read."""

from __future__ import annotations

from turnmill.codes.code import Code

CONVERTING: dict[str, Code] = {
    "ambiguous-columns": Code(
        "convert",
        "Two columns may hold the same thing (`messages` and `conversations`, a question and a problem), or a context "
        "stands beside the prompt, and nothing says what counts.",
        '{"messages": [{"role": "user", …}], "conversations": [{"from": "human", …}]}',
        "Choose for the source: `columns: {messages: conversations}`, `{prompt: question}`, `{context: context}`.",
    ),
    "answer-not-recorded": Code(
        "convert",
        "An action of an agent says what was done, and not what the model wrote: its response was not kept.",
        '{"source": "agent", "action": "run", "args": {"command": "ls"}}  (OpenHands, without tool_call_metadata)',
        "Record runs with native function calling; such ones cannot be read.",
    ),
    "call-id-not-text": Code(
        "convert",
        "The id of a call, or the id a result answers, is neither text nor a whole number.",
        '{"role": "tool", "tool_call_id": [1], "content": "5C"}',
        "Write ids as text.",
    ),
    "call-id-repeated": Code(
        "convert",
        "Two calls of one turn have the same id, so that results cannot be told apart.",
        '{"tool_calls": [{"id": "a", …}, {"id": "a", …}]}',
        "Give each call of a turn its own id.",
    ),
    "calls-outside-assistant": Code(
        "convert",
        "Somebody other than the assistant calls a tool or reasons.",
        '{"role": "user", "content": "hi", "tool_calls": [{…}]}',
        "Give the message its right role, or take the calls out.",
    ),
    "calls-recorded-twice": Code(
        "convert",
        "One message records calls in two places, such as `tool_calls` and `function_call`.",
        '{"role": "assistant", "tool_calls": [{…}], "function_call": {…}}',
        "Keep one of them.",
    ),
    "canonical-row-malformed": Code(
        "convert",
        "A row of the dialect `turnmill` is not as turnmill writes it: a content that is not one text part, weights or "
        "recorded indexes that are not one for each message, a column that is not JSON text.",
        '{"messages": [{…}, {…}], "weights": [1.0], "chat_template_kwargs": "{}", …}',
        "Take the rows from a prepared folder as they are, or name the dialect that the records are in.",
    ),
    "conversion-failed": Code(
        "convert",
        "The record holds a value that the dialect cannot convert.",
        '{"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": {"day": <a date>}}}]}]}',
        "Read the message; store plain JSON values.",
    ),
    "dialect-cannot-say": Code(
        "convert",
        "The dialect that `turnmill convert` is to write has no form for the row.",
        "a chat with tool calls, to be written as alpaca",
        "Write another dialect (`--to openai` says nearly everything), or leave the row out.",
    ),
    "harmony-malformed": Code(
        "convert",
        "A Harmony wire text is not message after message, or a header is none.",
        '{"text": "<|start|>user<|message|>hi<|start|>assistant…"}',
        "Record whole messages, each with its `<|end|>`, `<|call|>` or `<|return|>`.",
    ),
    "history-malformed": Code(
        "convert",
        "A history is not a list of pairs of question and answer.",
        '{"history": ["hi", "hello"], "instruction": "…", "output": "…"}',
        'Write it as `[["hi", "hello"]]`.',
    ),
    "id-not-text": Code(
        "convert",
        "The row's id is neither text nor a whole number.",
        '{"id": {"n": 1}, "messages": […]}',
        "Map another column: `columns: {id: …}`.",
    ),
    "message-not-object": Code(
        "convert",
        "An entry of the message list is not an object.",
        '{"messages": ["hi", "hello"]}',
        'Write it as `{"role": "user", "content": "hi"}`.',
    ),
    "messages-not-list": Code(
        "convert",
        "The messages are not a list, nor the JSON text of one.",
        '{"messages": {"user": "hi"}}',
        "Map the column that holds the list: `columns: {messages: …}`.",
    ),
    "name-not-text": Code(
        "convert",
        "A message's `name` is not text.",
        '{"role": "user", "name": 7, "content": "hi"}',
        "Write the name as text.",
    ),
    "no-speaker": Code(
        "convert",
        "A message does not say who speaks.",
        '{"messages": [{"content": "hi"}]}',
        "Map the key that names the speaker: `tags: {role: …}`.",
    ),
    "non-string-content": Code(
        "convert",
        "A text field holds a number, a truth value or an object.",
        '{"role": "user", "content": 42}',
        "Write the content as text.",
    ),
    "non-text-content": Code(
        "convert",
        "Content holds an image, audio, video or file; turnmill reads text only.",
        '{"content": [{"type": "image_url", "image_url": {"url": "…"}}]}',
        "Leave such rows out, or replace the part by text.",
    ),
    "prompt-withheld": Code(
        "convert",
        "The dataset gives the prompt by its hash alone, and the dataset that holds the prompts has none of that hash.",
        '{"messages": [{"role": "user", "content": null}, …], "metadata": {"seed_prompt_sha256": "3a02…"}}',
        "Nothing: a hash finds a prompt and stands for none. Look whether the source pins the right second dataset.",
    ),
    "reasoning-fields-disagree": Code(
        "convert",
        "Two fields of a message hold different reasoning.",
        '{"role": "assistant", "reasoning": "a", "reasoning_content": "b"}',
        "Map the one that counts: `tags: {reasoning_content: reasoning}`.",
    ),
    "reasoning-redacted": Code(
        "convert",
        "Reasoning was taken out of the recording (Anthropic's `redacted_thinking`): the answer stands without it.",
        '{"content": [{"type": "redacted_thinking", "data": "…"}, {"type": "text", "text": "4"}]}',
        "Nothing, or delete the block where the answer is to be learned without its reasoning.",
    ),
    "record-not-object": Code(
        "convert", "A record is not a JSON object.", '["hi", "hello"]', "Write one object a row."
    ),
    "terminus-without-commands": Code(
        "convert",
        "An answer of a Terminus run holds no JSON object with a list of commands: the harness could not act on it.",
        '{"role": "assistant", "content": "I will list the files."}',
        "Leave the row out, or read it as it stands with `--dialect openai`.",
    ),
    "tool-call-malformed": Code(
        "convert",
        "A call is not a function call with a name.",
        '{"tool_calls": [{"function": {"arguments": {}}}]}',
        'Write calls as `{"function": {"name": "f", "arguments": {}}}`.',
    ),
    "tool-call-not-json": Code(
        "convert",
        "A call that is recorded as text is not JSON.",
        '{"from": "function_call", "value": "get_weather(Oslo)"}',
        'Write it as `{"name": "get_weather", "arguments": {…}}`.',
    ),
    "tool-reply-ambiguous": Code(
        "convert",
        "A result without id may answer several calls.",
        "two calls, then one result that has neither `tool_call_id` nor a telling `name`",
        "Record `tool_call_id` on results.",
    ),
    "tool-reply-name-differs": Code(
        "convert",
        "A result's name is not the name of the call whose id it answers.",
        '{"role": "tool", "tool_call_id": "a", "name": "g"} after a call "a" to f',
        "Correct the id or the name.",
    ),
    "tools-disagree": Code(
        "convert",
        "Two places of the row define different tools.",
        '{"tools": [{"name": "f", …}], "functions": [{"name": "g", …}]}',
        "Keep one of them, or map the one that counts: `columns: {tools: …}`.",
    ),
    "tools-not-json": Code(
        "convert",
        "Tool definitions that are recorded as text are not JSON.",
        '{"tools": "get_weather(city)"}',
        "Write a JSON list of definitions.",
    ),
    "tools-not-list": Code(
        "convert",
        "Tool definitions are not a list.",
        '{"tools": {"name": "f", "parameters": {}}}',
        "Put the definition into a list.",
    ),
    "train-turns-invalid": Code(
        "convert",
        "`train_turns` is neither a list of whole numbers nor one of truth values, one a message.",
        '{"train_turns": "0,2"}',
        "Write `[0, 2]`: 0-based, counting assistant messages; or `[false, true]`: one value a message.",
    ),
    "train-turns-out-of-range": Code(
        "convert",
        "`train_turns` names an assistant message that the row does not have.",
        '{"train_turns": [3]} on a row with two answers',
        "Count recorded assistant messages only, from 0.",
    ),
    "twin-keys-disagree": Code(
        "convert",
        "One field is spelled in two ways that differ.",
        '{"from": "human", "role": "assistant", "value": "hi"}',
        "Map the spelling that counts: `tags: {role: from}`.",
    ),
    "unknown-content-part": Code(
        "convert",
        "A content part has a type that is not known.",
        '{"content": [{"type": "citation", "text": "…"}]}',
        "Write the part as `text`, or leave it out.",
    ),
    "unknown-speaker": Code(
        "convert",
        "Nobody of that name speaks in this dialect.",
        '{"from": "bing", "value": "hello"}',
        "Say who it is: `roles: {bing: assistant}`.",
    ),
    "weight-negative": Code(
        "convert", "A recorded loss weight is below 0.", '{"weight": -1}', "Write 0 to leave a message untrained."
    ),
    "weight-not-0-or-1": Code(
        "convert",
        "A recorded loss weight is neither 0 nor 1.",
        '{"role": "assistant", "content": "4", "weight": 0.5}',
        "Set `loss.fractional: true` to train with such weights.",
    ),
    "weight-not-a-number": Code(
        "convert", "A recorded loss weight is no number.", '{"weight": "high"}', "Write 0 or 1, true or false."
    ),
    "weight-not-finite": Code("convert", "A recorded loss weight is not finite.", '{"weight": 1e999}', "Write 0 or 1."),
    "weights-disagree": Code(
        "convert",
        "Two spellings of a message's loss weight disagree.",
        '{"weight": 0, "train": true}',
        "Keep one of them, or map it: `tags: {weight: train}`.",
    ),
}
