"""Runs: what identifies one, which are planned, how one is executed, and where its result lies."""
