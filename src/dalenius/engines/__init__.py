"""Where the work is done: one engine a file. Plans and releases are the same on each."""
