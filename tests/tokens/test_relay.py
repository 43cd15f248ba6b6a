"""Calls go through one thread after another, and what is kept for a thread ends with it."""

import gc
import multiprocessing
import os
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from turnmill.tokens.relay import Relay

kept = threading.local()


class Memory(list):
    """What a library keeps for a thread."""


memories = []


def remembered(texts):
    """How many texts this thread has been given so far."""
    if not hasattr(kept, "memory"):
        kept.memory = Memory()
        memories.append(weakref.ref(kept.memory))
    kept.memory.extend(texts)
    return len(kept.memory)


def test_another_thread_takes_over_when_so_many_characters_have_passed():
    relay = Relay(6)
    assert [relay.run(remembered, ["abc"]) for _ in range(5)] == [1, 2, 1, 2, 1]


def test_what_a_thread_kept_is_given_back_before_the_next_one_begins():
    memories.clear()
    relay = Relay(1)

    def living(texts):
        gc.collect()
        return sum(memory() is not None for memory in memories) + 0 * remembered(texts)

    assert [relay.run(living, ["abc"]) for _ in range(4)] == [0, 0, 0, 0]


def test_what_a_call_raises_is_raised_and_the_next_one_runs():
    relay = Relay(100)
    with pytest.raises(ValueError, match="invalid literal"):
        relay.run(lambda texts: int(texts[0]), ["x"])
    assert relay.run(lambda texts: int(texts[0]), ["1"]) == 1


def test_threads_may_share_a_relay():
    relay = Relay(10)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda number: relay.run("".join, [str(number)]), range(500)))
    assert found == list(map(str, range(500)))


def _in_child(relay, sent):
    sent.send(relay.run("".join, ["a", "b"]))


@pytest.mark.skipif(sys.platform != "linux", reason="others do not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_thread_of_its_own():
    relay = Relay(100)
    assert relay.run(lambda _: os.getpid(), ["a"]) == os.getpid()
    context = multiprocessing.get_context("fork")
    found, sent = context.Pipe(duplex=False)
    child = context.Process(target=_in_child, args=(relay, sent))
    child.start()
    assert found.poll(30)
    assert found.recv() == "ab"
    child.join()
