"""All the SQL there is: connections, tables, and the queries of workers, masters and people."""
