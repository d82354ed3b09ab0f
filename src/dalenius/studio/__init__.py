"""The whole job in a browser, on this machine only: it calls what the command line calls."""
