"""Talks between a customer and an agent that calls tools, as ShareGPT conversations."""

from __future__ import annotations

from turnmill.sources import Pin, PinnedSource, source

COMMIT = "abc4a517d67c541f85f6470cbd8fd3186b36830e"


@source("apigen-mt")
def apigen_mt() -> PinnedSource:
    """Talks between a customer and an agent that calls tools, under the rules of a shop or an airline."""
    return PinnedSource(
        pin=Pin(f"hf://datasets/Salesforce/APIGen-MT-5k@{COMMIT}", ("apigen-mt_5k.json",)),
        dialect="sharegpt",
        tokens=35e6,  # 5,000 talks of about 7,000: an estimate
        licence="cc-by-nc-4.0",
    )
