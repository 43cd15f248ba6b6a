"""Two processes give what one gives."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

from evaluation_rows import uneven
from tiny_models import tiny_model
from turnmill.evaluation.evaluate import evaluate
from turnmill.evaluation.sets import made_set

RUN = """
import json, os, sys
from datetime import timedelta
sys.path[:0] = {paths!r}
import torch
import torch.distributed as distributed
from evaluation_rows import uneven
from tiny_models import tiny_model
from turnmill.errors import TurnmillError
from turnmill.evaluation.evaluate import evaluate
from turnmill.evaluation.sets import made_set
from turnmill.options import Evaluate

rank = int(sys.argv[1])
torch.set_num_threads(1)
address = "tcp://127.0.0.1:{port}"
distributed.init_process_group("gloo", address, rank=rank, world_size=2, timeout=timedelta(seconds=60))
model = tiny_model("llama").train()
sets = [made_set("a", uneven(7)), made_set("b", uneven(12)[7:])]
found = evaluate(model, sets, keep_items=True)
answer = [found.as_json(), len(found.items), found.items[3].total.nll]
try:
    if rank == 1:
        model.lm_head = None
    evaluate(model, sets)
except Exception as problem:
    answer.append(type(problem).__name__ + ": " + str(problem))
print(json.dumps(answer))
distributed.destroy_process_group()
"""


@pytest.fixture(scope="module")
def ranks() -> list:
    """What each of two ranks found, and how it ended when the second one failed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = RUN.format(paths=[path for path in sys.path if path], port=port)
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(rank)], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    return [json.loads(process.communicate(timeout=120)[0].splitlines()[-1]) for process in processes]


def test_two_ranks_find_what_one_finds(ranks):
    (first, *_), (second, *_) = ranks
    assert first == second
    sets = [made_set("a", uneven(7)), made_set("b", uneven(12)[7:])]
    alone = evaluate(tiny_model("llama"), sets, keep_items=True)
    assert ranks[0][1] == 12
    assert ranks[0][2] == pytest.approx(alone.items[3].total.nll, abs=1e-5)
    assert first["loss"] == pytest.approx(alone.loss, abs=1e-6)
    assert first["tokens"] == alone.total.tokens
    assert first["sets"]["b"]["examples"] == 5


def test_a_rank_that_fails_stops_all(ranks):
    first, second = (of_rank[3] for of_rank in ranks)
    assert first.startswith("HealthError: rank 1 could not evaluate: ")
    assert not second.startswith("HealthError")
