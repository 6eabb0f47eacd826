"""Mutation testing: small defects put into the product, each of which some test has to find.

`python -m tests.mutation` (make mutants) makes them one at a time in a process of its own and runs
the tests that reach the changed code. A defect that no test notices has survived.

`sql_operators`, `code_operators`   what is changed, in SQL text and in Python functions
`targets`                           where, and the sample that is tried
`judge`                             which tests run, in which order, for how long
"""
