"""Where answers go: one file for each kind of channel, all behind one protocol."""
