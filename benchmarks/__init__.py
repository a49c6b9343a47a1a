"""Measurements, each `python -m benchmarks.NAME [--quick] [--json]`. Nothing here is a test."""
