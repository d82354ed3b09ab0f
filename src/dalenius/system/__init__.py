"""What operating systems do differently: locks, syncing, who may read a file, renaming, stopping.

Two sides with the same functions, `posix` and `windows`; the one for this machine is chosen at import, and
the other one is not loaded. Callers say `system.lock(file)`, so that tests can put the other side in.
"""

import sys

if sys.platform == "win32":
    from dalenius.system.windows import (
        create_private,
        data_folder,
        lock,
        make_private_folder,
        private_temporary_folder,
        rename,
        restrict,
        run_apart,
        share,
        stop_on_signals,
        sync,
        work_apart_if_limited,
    )
else:
    from dalenius.system.posix import (
        create_private,
        data_folder,
        lock,
        make_private_folder,
        private_temporary_folder,
        rename,
        restrict,
        run_apart,
        share,
        stop_on_signals,
        sync,
        work_apart_if_limited,
    )

__all__ = [
    "create_private",
    "data_folder",
    "lock",
    "make_private_folder",
    "private_temporary_folder",
    "rename",
    "restrict",
    "run_apart",
    "share",
    "stop_on_signals",
    "sync",
    "work_apart_if_limited",
]
