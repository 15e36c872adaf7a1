"""Benchmarks: ratios in one run, with the baseline beside it. Run them with `make bench`."""
