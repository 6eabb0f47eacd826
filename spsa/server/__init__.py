"""`spsa-master serve`: the values of `spsa.report` over HTTP, and the changes of an operator."""
