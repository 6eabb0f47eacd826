"""The values of `spsa.report` over HTTP: pages, their JSON, and Prometheus' text format."""
