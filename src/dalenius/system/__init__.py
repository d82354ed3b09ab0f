"""What operating systems do differently: locks, syncing, who may read a file, renaming, stopping.

Two sides with the same functions, `posix` and `windows`; the one for this machine is chosen at import, and
the other one is not loaded. Callers say `system.lock(file)`, so that tests can put the other side in.
"""

import sys

if sys.platform == "win32":
    from dalenius.system import windows as here
else:
    from dalenius.system import posix as here

create_private = here.create_private
data_folder = here.data_folder
lock = here.lock
make_private_folder = here.make_private_folder
private_temporary_folder = here.private_temporary_folder
rename = here.rename
restrict = here.restrict
run_apart = here.run_apart
share = here.share
stop_on_signals = here.stop_on_signals
sync = here.sync
work_apart_if_limited = here.work_apart_if_limited
