"""The embedded engine: continuous batching on this machine, own thread, paged KV."""
