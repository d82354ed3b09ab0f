"""mechanisms/suppress."""
