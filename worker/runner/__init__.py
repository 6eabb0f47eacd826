"""Games played quickly and fairly: slots, pairs, clocks, adjudication, openings."""
