"""A question about a release as a value: from SQL to totals, and what an answer is."""
