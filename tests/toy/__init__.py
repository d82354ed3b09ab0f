"""A fifth mechanism, roulette: a record's sensitive value is kept, or a wheel with all values is spun for it.

It is not part of the package and as small as an honest mechanism can be. It shows that one folder of rooms is
all that a mechanism needs: nothing outside this folder knows it.
"""
