"""A step of a recipe as data: nothing runs here."""

from __future__ import annotations

import hashlib

import msgspec

from turnmill.conversation import Json, canonical_json

FOLDER_DIGITS = 32


class Step(msgspec.Struct, frozen=True):
    """What one folder of data is made by, and of what."""

    name: str
    """The verb."""
    version: int
    """Raised when the same params and inputs would give other bytes."""
    params: dict[str, Json]
    """Every option that can change a byte of the output, as JSON."""
    inputs: tuple[str, ...]
    """Hashes of what it reads, in order, with the names it stores; fingerprints of the steps before."""

    @property
    def fingerprint(self) -> str:
        """Hex sha256 over canonical JSON of name, version, params and inputs; the order of keys does not count."""
        recipe = {"name": self.name, "version": self.version, "params": self.params, "inputs": list(self.inputs)}
        return hashlib.sha256(canonical_json(recipe)).hexdigest()

    @property
    def folder_name(self) -> str:
        """Name of its folder in a cache."""
        return f"{self.name}-{self.fingerprint[:FOLDER_DIGITS]}"
