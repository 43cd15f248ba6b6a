"""The branches of a Claude Code session, by its parent links: one thread for each way that it went.

The model's response is written as a line for each block (they share the message's id), and each result of parallel
calls hangs on the line of its own call, so that the links fan out where the conversation does not. A *node* is
therefore a response with all of its results, or one event of the user's side, and the tree is one of nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from operator import not_

from turnmill.conversation import Json
from turnmill.dialects.sessions import MOST_REPEATED_BYTES, Event, Thread, in_file_order, thread, too_branched, torn
from turnmill.errors import Rejected

INTERRUPTED = "[Request interrupted by user"
"""How the text begins that Claude Code writes where the user stops a run."""


class Node:
    """A response with its results, or one other event."""

    def __init__(self, event: Event) -> None:
        self.said = [event]
        self.results: list[Event] = []
        self.parent: Node | None = None
        self.children: list[Node] = []
        self.is_torn = False
        """Whether its parent is not in the file."""
        self.is_answer = is_answer(event)
        self.is_side = bool(value_of(event).get("isSidechain"))
        self.root = self
        self.is_answered = False
        """Whether an answer stands above it."""
        self.leads_to_answer = False
        self.bytes = 0
        """Of the lines of all nodes from the root to it."""

    @property
    def line(self) -> int:
        """Where it begins in the file."""
        return min(event.line for event in self.said)

    @property
    def events(self) -> list[Event]:
        """Its events that say something, in the order in which the model sees them."""
        return [event for event in (*self.said, *self.results) if says_something(event)]

    def copied(self) -> Node:
        """The same events in another place of the tree."""
        copy = Node(self.said[0])
        copy.said, copy.results = self.said, self.results
        return copy


def value_of(event: Event) -> dict[str, Json]:
    """What the event holds; nothing where its line cannot be read."""
    return event.value or {}


def message_of(event: Event) -> dict[str, Json]:
    """The API message of an event."""
    message = value_of(event).get("message")
    return message if isinstance(message, dict) else {}


def blocks_of(event: Event) -> list[dict[str, Json]]:
    """The blocks of an event's message."""
    content = message_of(event).get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def is_synthetic(value: dict[str, Json]) -> bool:
    """Whether Claude Code wrote this answer itself, in place of a model."""
    message = value.get("message")
    return bool(value.get("isApiErrorMessage")) or (isinstance(message, dict) and message.get("model") == "<synthetic>")


def is_answer(event: Event) -> bool:
    """Whether the model says something here."""
    value = value_of(event)
    return value.get("type") == "assistant" and "message" in value and not is_synthetic(value)


def says_something(event: Event) -> bool:
    """Whether an event is part of a conversation."""
    return any(key in value_of(event) for key in ("message", "attachment", "content"))


def threads_of_tree(events: Sequence[Event], counts: Counter[str]) -> list[Thread]:
    """One thread for each answer that no later one follows, and for events whose beginning is not known."""
    tree = _Tree(events, counts)
    reached = _marked(tree.nodes)
    ends = [node for node in reached if node.is_answer and not node.leads_to_answer]
    unanswered = [node for node in reached if not (node.children or node.is_answer or node.is_answered)]
    if any(node.events for node in unanswered):
        counts["read/branch-without-answer"] += sum(bool(node.events) for node in unanswered)
    found = list(_branches(sorted(ends, key=lambda node: node.line), tree))
    known = set(reached)
    lost = [event for node in tree.nodes if node not in known for event in node.events]
    if lost:
        fault = Rejected("session-cycle", "the parent links of these events lead in a circle")
        found.append(thread(lost, fault=fault, **tree.columns(lost[0])))
    return in_file_order(found)


def _marked(nodes: Sequence[Node]) -> list[Node]:
    """The nodes that a root leads to, parents first; each learns its root and what stands above and below it."""
    order = [node for node in nodes if node.parent is None]
    for node in order:  # grows while it is walked
        for child in node.children:
            child.root, child.bytes = node.root, node.bytes + child.bytes
            child.is_answered = node.is_answer or node.is_answered
            order.append(child)
    for node in reversed(order):
        node.leads_to_answer = any(child.is_answer or child.leads_to_answer for child in node.children)
    return order


def _branches(ends: Sequence[Node], tree: _Tree) -> Iterator[Thread]:
    """A thread for each of the last answers, in the order in which they were given."""
    seen: set[Node] = set()
    lines: set[int] = set()
    last_of = {end.root: end for end in ends}
    repeated = 0
    for end in ends:
        own = _path(end, seen)
        first = own[0].parent
        repeated += first.bytes if first is not None else 0
        columns: dict[str, Json] = {"branch": "abandoned"} if last_of[end.root] is not end else {}
        told = [event for node in own for event in node.events]
        if repeated > MOST_REPEATED_BYTES:
            yield thread(told, fault=too_branched(), **columns, **tree.columns(told[0]))
            continue
        before = [event for node in _path(first, set()) for event in node.events] if first is not None else []
        tail = [event for node in _way_down(end) for event in node.events]
        whole = [*before, *told, *tail]
        columns |= tree.columns(whole[0]) | {"ended": _ending(tail)}
        if "branch" in columns:
            columns["id"] = _composed(columns["id"], "@", value_of(end.said[-1]).get("uuid"))
        fault = torn("their parent is not in the file") if end.root.is_torn else None
        yield thread(whole, [event.line in lines for event in whole], fault, **columns)
        seen.update(own)
        lines.update(event.line for event in told)


def _path(end: Node, seen: set[Node]) -> list[Node]:
    """The nodes above one, and it, first to last; up to one that was seen."""
    path = [end]
    while path[-1].parent is not None and path[-1].parent not in seen:
        path.append(path[-1].parent)
    return path[::-1]


def _way_down(node: Node) -> Iterator[Node]:
    """What follows a last answer, along the branch that was written last."""
    while node.children:
        node = max(node.children, key=lambda child: child.line)
        yield node


def _ending(tail: Sequence[Event]) -> str | None:
    """How a run ended, by what stands behind its last answer."""
    for event in reversed(tail):
        if is_synthetic(value_of(event)):
            return "error"
        content = message_of(event).get("content")
        texts = [content] if isinstance(content, str) else [block.get("text") for block in blocks_of(event)]
        if any(isinstance(text, str) and text.startswith(INTERRUPTED) for text in texts):
            return "interrupted"
    return None


def _composed(name: Json, mark: str, part: Json) -> str | None:
    """A name of two parts, None where either is not recorded."""
    return f"{name}{mark}{part}" if isinstance(name, str) and isinstance(part, str) else None


def _in_chain(events: list[Event]) -> list[Event]:
    """The lines of a response, each behind the one it names as its parent, wherever they stand in the file."""
    if len(events) < 2:
        return events
    own = {value_of(event)["uuid"] for event in events}
    after: dict[Json, list[Event]] = {}
    for event in events:
        named = value_of(event).get("parentUuid")
        after.setdefault(named if isinstance(named, str) and named in own else None, []).append(event)
    ordered: list[Event] = []
    waiting = after.pop(None, [])[::-1]
    while waiting:
        ordered.append(waiting.pop())
        waiting += after.pop(value_of(ordered[-1])["uuid"], [])[::-1]
    return ordered if len(ordered) == len(events) else events


class _Tree:
    """The nodes of a session, linked.

    Args:
        events: of the whole file.
        counts: takes events that are there twice.
    """

    def __init__(self, events: Sequence[Event], counts: Counter[str]) -> None:
        self._counts = counts
        self._owner: dict[str, Node] = {}
        """Uuid of an event → its node."""
        self._responses: dict[str, Node] = {}
        self._calls: dict[str, Node] = {}
        """Id of a call → the response that makes it."""
        self._answered: set[str] = set()
        self._started: dict[str, str] = {}
        """Sub-agent → the id of the call that started it."""
        self.nodes: list[Node] = []
        known = [event for event in events if event.value is not None and self._is_new(event)]
        self._gather(known)
        for node in list(self.nodes):
            self._link(node)
        for event in known:
            if value_of(event).get("subtype") == "compact_boundary":
                self._keep_segment(event)
        for node in self.nodes:
            node.bytes = sum(event.bytes for event in (*node.said, *node.results))
            if node.parent is not None:
                node.parent.children.append(node)

    def _gather(self, events: Sequence[Event]) -> None:
        """Make nodes: first of the answers, by which results are known."""
        is_answer_line = [value_of(event).get("type") == "assistant" for event in events]
        for event in compress(events, is_answer_line):
            self._add_answer(event)
        for event in compress(events, map(not_, is_answer_line)):
            self._add_other(event)
        for node in self.nodes:
            node.said = _in_chain(node.said)
        self.nodes.sort(key=lambda node: node.line)

    def columns(self, event: Event) -> dict[str, Json]:
        """`id` and the columns that link the thread of an event."""
        value = value_of(event)
        session, agent = value.get("sessionId"), value.get("agentId")
        if value.get("isSidechain") and agent is None:
            agent = value.get("uuid")
        forked = value.get("forkedFrom")
        parent = session if agent is not None else forked.get("sessionId") if isinstance(forked, dict) else None
        name = session if agent is None else _composed(session, "/", agent)
        call = self._started.get(agent) if isinstance(agent, str) else None
        if value.get("isCompactSummary"):
            name = _composed(name, "@", value.get("uuid"))
        return {"id": name, "session": session, "agent": agent, "parent": parent, "parent_call": call}

    def _is_new(self, event: Event) -> bool:
        """Whether no event before has its uuid: branching writes events anew, without their parents."""
        uuid = value_of(event).get("uuid")
        if not isinstance(uuid, str):
            self._counts["read/event-dropped/without-uuid"] += says_something(event)
            return False
        if uuid in self._owner:
            self._counts["read/duplicate-event-dropped"] += 1
            return False
        self._owner[uuid] = Node(event)
        return True

    def _add_answer(self, event: Event) -> None:
        identity = message_of(event).get("id")
        node = self._owner[value_of(event)["uuid"]]
        if isinstance(identity, str) and node.is_answer:
            node = self._responses.setdefault(identity, node)
        if node.said[0] is event:
            self.nodes.append(node)
        elif self._repeats(event, node):
            self._counts["read/duplicate-event-dropped"] += 1
        else:
            node.said.append(event)
        self._owner[value_of(event)["uuid"]] = node
        for block in blocks_of(event):
            if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                self._calls.setdefault(block["id"], node)

    def _repeats(self, event: Event, node: Node) -> bool:
        content = message_of(event).get("content")
        return any(message_of(said).get("content") == content for said in node.said)

    def _add_other(self, event: Event) -> None:
        uuid = value_of(event)["uuid"]
        answered = [block.get("tool_use_id") for block in blocks_of(event) if block.get("type") == "tool_result"]
        calls = [call for call in answered if isinstance(call, str) and call in self._calls]
        if not calls:
            self.nodes.append(self._owner[uuid])
            return
        node = self._calls[calls[0]]
        self._owner[uuid] = node
        if self._answered.issuperset(calls):
            self._counts["read/duplicate-event-dropped"] += 1
            return
        node.results.append(event)
        self._answered.update(calls)
        detail = value_of(event).get("toolUseResult")
        if isinstance(detail, dict) and isinstance(detail.get("agentId"), str):
            self._started.setdefault(detail["agentId"], calls[0])

    def _link(self, node: Node) -> None:
        """Find a node's parent: that of its first event which hangs on none of its own."""
        for event in node.said:
            named = value_of(event).get("parentUuid")
            if named is None:
                return
            parent = self._owner.get(named) if isinstance(named, str) else None
            if parent is None:
                node.is_torn = True
                return
            if parent is not node:
                node.parent = parent if parent.is_side == node.is_side else None
                return
        node.parent = node  # it hangs on itself alone

    def _keep_segment(self, boundary: Event) -> None:
        """Put messages that a compaction kept behind its summary, where the model saw them, for what came after it."""
        kept, anchor = self._segment(value_of(boundary).get("compactMetadata"))
        above = self._owner.get(anchor or "")
        if above is None or not kept:
            return
        copies: dict[Node, Node] = {}
        for node in kept:
            copies[node] = node.copied()
            copies[node].parent = above
            above = copies[node]
        for node in self.nodes:
            if node.line > boundary.line and node.parent in copies:
                node.parent = copies[node.parent]
        self.nodes.extend(copies.values())

    def _segment(self, detail: Json) -> tuple[list[Node], str | None]:
        """The nodes that a compaction kept, first to last, and the uuid that they stand behind."""
        if not isinstance(detail, dict):
            return [], None
        listed, ends = detail.get("preservedMessages"), detail.get("preservedSegment")
        if isinstance(listed, dict) and isinstance(listed.get("uuids"), list):
            named = [self._owner[uuid] for uuid in listed["uuids"] if isinstance(uuid, str) and uuid in self._owner]
            return list(dict.fromkeys(named)), listed.get("anchorUuid")
        if not isinstance(ends, dict):
            return [], None
        head, node = self._owner.get(str(ends.get("headUuid"))), self._owner.get(str(ends.get("tailUuid")))
        walked: dict[Node, None] = {}
        while node is not None and node not in walked:
            walked[node] = None
            if node is head:
                return list(walked)[::-1], ends.get("anchorUuid")
            node = node.parent
        return [], None
