"""What an attacker knows and wants, and what an attack found."""
