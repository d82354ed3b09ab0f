"""How unlikely a statistical test's finding must be before it fails: one number for all tests.

Seeds are fixed, so that what passes goes on passing; the number says how often code that is right would fail
under other seeds.
"""

from __future__ import annotations

from scipy import stats

FALSE_ALARM = 1e-6
Z = float(stats.norm.isf(FALSE_ALARM / 2))
"""A normal number is further than so many standard deviations from its mean with that probability: 4.9."""
