"""Names of plug-ins: a family is a plural folder, a plug-in is one decorated function in one file of it."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from turnmill.errors import UnknownName, UsageError, shell_word

Plugin = TypeVar("Plugin")


class Registry(Generic[Plugin]):
    """The plug-ins of one family, found on first look-up.

    A name is a built-in's, one of the entry-point group `turnmill.<family>`, or `path/to/mine.py:name`.
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self._plugins: dict[str, Plugin] = {}
        self._versions: dict[str, str] = {}
        """Of plug-ins that are not built in."""
        self._discovered = False

    def register(self, name: str) -> Callable[[Plugin], Plugin]:
        """Decorator that enters a plug-in under `name`."""

        def enter(plugin: Plugin) -> Plugin:
            self._plugins[name] = plugin
            return plugin

        return enter

    def names(self) -> list[str]:
        """All names but those of files, sorted."""
        self._discover()
        return sorted(name for name in self._plugins if ".py:" not in name)

    def get(self, name: str) -> Plugin:
        """The plug-in of that name.

        Raises:
            UnknownName: no such plug-in; the message suggests the nearest name.
        """
        self._discover()
        if name not in self._plugins and ".py:" in name:
            self._plugins[name] = self.from_file(name)
        if name not in self._plugins:
            singular = self.family.removesuffix("s")
            raise UnknownName(singular, name, self.names(), next_step=f"turnmill list {self.family}")
        return self._plugins[name]

    def summary(self, name: str) -> str:
        """First line of a plug-in's documentation (its own, else its module's)."""
        plugin = self.get(name)
        text = inspect.getdoc(plugin) or inspect.getdoc(inspect.getmodule(plugin)) or ""
        return text.partition("\n")[0]

    def identity(self, name: str) -> str:
        """Name and version of a plug-in: what a step's recipe holds of it, the same wherever its file lies.

        The version is the hash of its file for one from a file, the distribution's for one of an entry point, and for
        a built-in the `VERSION` of its module, 1 where it has none.

        Raises:
            UnknownName: no such plug-in.
        """
        plugin = self.get(name)
        if name in self._versions:
            return f"{name.rpartition(':')[2]}@{self._versions[name]}"
        return f"{name}@{getattr(inspect.getmodule(plugin), 'VERSION', 1)}"

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(f"turnmill.{self.family}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
        for entry in importlib.metadata.entry_points(group=f"turnmill.{self.family}"):
            if entry.name not in self._plugins:
                self._plugins[entry.name] = entry.load()
                self._versions[entry.name] = f"{entry.dist.name}-{entry.dist.version}" if entry.dist else "unknown"

    def from_file(self, name: str) -> Plugin:
        """What `path/to/mine.py:name` names.

        Raises:
            UsageError: no such file.
            UnknownName: nothing of that name in it.
        """
        path, _, attribute = name.rpartition(":")
        if not Path(path).is_file():
            raise UsageError(
                f"no such plug-in file: {path!r} (expected PATH.py:NAME)", next_step=f"ls {shell_word(path)}"
            )
        spec = importlib.util.spec_from_file_location(f"turnmill_plugin_{Path(path).stem}", path)
        if spec is None or spec.loader is None:
            raise UsageError(f"cannot load {path!r} as Python")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = {key: value for key, value in vars(module).items() if callable(value)}
        if attribute not in found:
            raise UnknownName(f"name in {path}", attribute, (key for key in found if not key.startswith("_")))
        self._versions[name] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        plugin: Plugin = found[attribute]
        return plugin


def families() -> list[str]:
    """Names of the plug-in families, sorted: the packages of turnmill that hold a `Registry` of their own name."""
    root = Path(__file__).parent
    return sorted(path.parent.name for path in root.glob("*/__init__.py") if "Registry(" in path.read_text("utf-8"))


def family_registry(family: str) -> Registry[Any]:
    """The registry of a family.

    Raises:
        UnknownName: no such family.
    """
    if family not in families():
        raise UnknownName("family", family, families(), next_step="turnmill list dialects")
    registry: Registry[Any] = getattr(importlib.import_module(f"turnmill.{family}"), family)
    return registry
