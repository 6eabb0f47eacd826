"""From values to binaries: pinned source, rewritten constants, cargo, artifact store."""
