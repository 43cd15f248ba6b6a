"""SWE-agent trajectories: `.traj` files, whose `history` is what the model saw and said.

The `trajectory` beside it says the same step by step (thought, action, observation) and is not read. Demonstrations are
context: what an agent said in them gets weight 0. mini-swe-agent's trajectories hold `messages` in place of a history.
"""

from __future__ import annotations

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect
from turnmill.dialects.fields import Fields, require_known
from turnmill.dialects.openai import MANNER
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.sessions import traced
from turnmill.dialects.traces import read_trace
from turnmill.dialects.turns import open_message, read_message
from turnmill.errors import Rejected, quote

REPEATED = ("thought", "action", "agent", "message_type", "tags", "cache_control", "is_demo", "extra")
"""Keys of an entry that repeat what its content says, or steer the agent."""
ENDED = "exit"
"""The role of the entry by which mini-swe-agent says how the run ended."""
SUBMITTED = ("submitted", "Submitted")


traced.add("swe-agent")


@dialect("swe-agent")
def swe_agent(record: dict[str, Json], reading: Reading) -> Conversation:
    """SWE-agent trajectories: a `.traj` with its history, or mini-swe-agent's messages."""
    require_known("column", reading.mapping.columns, ())
    require_known("tag", reading.mapping.tags, ())
    fields = Fields(record, {})
    entries = fields.take("history", "messages")
    if not isinstance(entries, list):
        if entries is None:
            raise Rejected("no-messages", "the trajectory has no history: its prompts are not recorded")
        raise Rejected("messages-not-list", f"the history is {quote(entries)}; expected a list")
    for repeated in ("trajectory", "environment", "replay_config", "trajectory_format"):
        fields.take_as_is(repeated)
    info = fields.take_as_is("info")
    status = info.get("exit_status") if isinstance(info, dict) else None
    fields.rest["ended"] = None if status in SUBMITTED else status
    said = [_utterance(entry, index, reading) for index, entry in enumerate(_of_one_agent(entries, reading))]
    return read_trace(fields, [utterance for utterance in said if utterance is not None], reading)


def _of_one_agent(entries: list[Json], reading: Reading) -> list[Json]:
    """The entries of the agent that speaks first outside a demonstration, and those that name none."""
    named = [entry.get("agent") for entry in entries if isinstance(entry, dict) and not entry.get("is_demo")]
    main = next((agent for agent in named if agent), None)
    own = [e for e in entries if not isinstance(e, dict) or e.get("is_demo") or e.get("agent") in (None, main)]
    if len(own) < len(entries):
        reading.counts["read/other-agents-dropped"] += len(entries) - len(own)
    return own


def _utterance(entry: Json, index: int, reading: Reading) -> Utterance | None:
    rest = open_message(entry, index, reading).rest
    if rest.get("role") == ENDED:
        return None
    is_demonstration = bool(rest.get("is_demo"))
    message = {key: value for key, value in rest.items() if key not in REPEATED}
    answered = message.pop("tool_call_ids", None)
    if isinstance(answered, list) and len(answered) == 1:
        message.setdefault("tool_call_id", answered[0])
    thought = _thought(message.pop("thinking_blocks", None), reading)
    if thought:
        message.setdefault("reasoning_content", thought)
    if isinstance(message.get("content"), list):
        message["content"] = [_without_cache_control(part) for part in message["content"]]
    utterance = read_message(message, index, MANNER, reading)
    if is_demonstration and utterance.role in ("assistant", "tool"):
        utterance.weight = 0.0
        reading.counts["read/demonstration-untrained"] += 1
    return utterance


def _without_cache_control(part: Json) -> Json:
    return {key: value for key, value in part.items() if key != "cache_control"} if isinstance(part, dict) else part


def _thought(blocks: Json, reading: Reading) -> str:
    """The text of thinking blocks; those that were taken out are counted."""
    texts: list[str] = []
    for block in blocks if isinstance(blocks, list) else ():
        text = block.get("thinking") if isinstance(block, dict) else None
        if isinstance(text, str) and text:
            texts.append(text)
        else:
            reading.counts["read/reasoning-withheld"] += 1
    return "".join(texts)
