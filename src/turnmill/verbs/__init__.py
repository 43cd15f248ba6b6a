"""One thin module a verb: its options, its plan, its run."""
