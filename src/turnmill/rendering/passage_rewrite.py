"""The rewrite of a template for recording by passages: its outer loops say what they walk, and of themselves."""

from __future__ import annotations

from typing import Any

from jinja2 import nodes

from turnmill.rendering.environment import filtered
from turnmill.rendering.recording import RecordingRewrite
from turnmill.rendering.walk import exact


class PassageRewrite(RecordingRewrite):
    """The rewrite of a recorded template; loops that stand in no other loop or block may walk the messages."""

    def __init__(self) -> None:
        super().__init__(stamps=True)
        self._loops: list[bool] = []
        """Of the loops around a node, whether they stand in no other."""
        self._blocks = 0

    def visit_For(self, node: nodes.For) -> list[nodes.Node]:
        """A loop; an outer one says when it begins and ends."""
        is_outer = not self._loops and not self._blocks and not (node.test or node.else_ or node.recursive)
        walked, node.iter = self.visit(node.iter), nodes.Const(None)
        self._loops.append(is_outer)
        before, made, after = super().visit_For(node)
        self._loops.pop()
        node.iter = filtered("_walk", walked) if is_outer else walked
        if is_outer:
            after = nodes.ExprStmt(filtered("_leave", nodes.Const(None, lineno=node.lineno)), lineno=node.lineno)
        return [before, made, after]

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:
        """What an outer loop says of itself."""
        if not self._names_outer_loop(node.node):
            return self.generic_visit(node)
        fact = nodes.Const(node.attr, lineno=node.lineno)
        return filtered("_loop", nodes.List([fact, node], lineno=node.lineno))

    def visit_Const(self, node: nodes.Const) -> nodes.Node:
        """A constant, no float."""
        exact(node.value)
        return super().visit_Const(node)

    def visit_Name(self, node: nodes.Name) -> nodes.Node:
        """An outer loop handed on as a whole."""
        return filtered("_refused", node) if self._names_outer_loop(node) else node

    def _names_outer_loop(self, node: nodes.Node) -> bool:
        is_loop = isinstance(node, nodes.Name) and node.name == "loop" and node.ctx == "load"
        return is_loop and bool(self._loops) and self._loops[-1]

    def _in_block(self, node: Any) -> Any:
        self._blocks += 1
        try:
            return self.generic_visit(node)
        finally:
            self._blocks -= 1

    visit_Macro = visit_CallBlock = visit_AssignBlock = visit_FilterBlock = visit_Block = _in_block
