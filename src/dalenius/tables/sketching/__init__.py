"""How a table's sketch is made, of a whole table and of one in pieces."""
