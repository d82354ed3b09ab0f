"""Attacks on releases: one attacker a file, each with what he knows, a baseline, a control and a bound."""
