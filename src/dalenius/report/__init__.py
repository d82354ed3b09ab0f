"""Pictures and reports of plans and releases."""
