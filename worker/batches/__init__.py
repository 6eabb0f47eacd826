"""The loop of a worker: claims batches, has them played, renews, reports."""
