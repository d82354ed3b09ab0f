"""The probabilities of views, chosen for a promise and a domain."""
