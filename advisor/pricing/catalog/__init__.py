"""Facts of machines and prices that ship as files, and how such files are made and checked."""
