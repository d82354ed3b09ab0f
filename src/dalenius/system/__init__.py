"""What operating systems do differently: locks, syncing, who may read a file, renaming, stopping.

Two sides with the same functions, `posix` and `windows`; the one for this machine is chosen at import, and
the other one is not loaded. Callers say `system.lock(file)`, so that tests can put the other side in.
"""

import sys

if sys.platform == "win32":
    from dalenius.system import windows as here
else:
    from dalenius.system import posix as here

lock, sync, rename = here.lock, here.sync, here.rename
create_private, make_private_folder = here.create_private, here.make_private_folder
restrict, share = here.restrict, here.share
data_folder, private_temporary_folder = here.data_folder, here.private_temporary_folder
stop_on_signals, keep_freed_memory = here.stop_on_signals, here.keep_freed_memory
run_apart, work_apart_if_limited = here.run_apart, here.work_apart_if_limited
