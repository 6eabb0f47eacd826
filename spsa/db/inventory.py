"""Which parts of this program's schema a database lacks, or has with another definition."""

import re
from collections import defaultdict

import sqlalchemy as sa

from spsa.db.schema import PRIVATE_VIEWS, VIEWS, metadata
from spsa.db.sql_files import definitions, functions, triggers

_POSTGRESQL = """
SELECT CASE relkind WHEN 'v' THEN 'view' ELSE 'table' END, relname::text
  FROM pg_class WHERE relkind IN ('r', 'p', 'v') AND pg_table_is_visible(oid)
UNION ALL
SELECT 'column', c.relname || '.' || a.attname
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
 WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
   AND pg_table_is_visible(c.oid)
UNION ALL
SELECT 'trigger', t.tgname::text
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND pg_table_is_visible(c.oid)
UNION ALL
SELECT 'function', proname::text FROM pg_proc WHERE pg_function_is_visible(oid)
"""

_SQLITE = """
SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view', 'trigger')
UNION ALL
SELECT 'column', m.name || '.' || c.name
  FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'
"""

_POSTGRESQL_DEFINITIONS = """
SELECT 'function', proname::text, pg_get_functiondef(oid)
  FROM pg_proc WHERE proname LIKE 'spsa%' AND prokind = 'f' AND pg_function_is_visible(oid)
UNION ALL
SELECT 'trigger', t.tgname::text, pg_get_triggerdef(t.oid, true)
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid)
"""

_SQLITE_DEFINITIONS = "SELECT type, name, sql FROM sqlite_master WHERE type = 'trigger'"

_AS_WRITTEN = (  # what PostgreSQL writes in another way than the files do
    (re.compile(r'(?<=FUNCTION )(?:\w+|"[^"]+")\.'), ""),
    (re.compile(r"RETURNS record\s"), ""),
    (re.compile(r"(?<=DEFAULT NULL)::\w+"), ""),
    (re.compile(r"(?<=search_path )TO [^\n]*"), "FROM CURRENT"),
    (re.compile(r"\$function\$"), "$$"),
)
_CONDITION = re.compile(r"(?<=WHEN )\(.*\)\s+(?=EXECUTE FUNCTION)", re.DOTALL)  # of a trigger

SchemaObject = tuple[str, str]
"""A kind (table, column, view, trigger or function) and a name."""


def missing(connection: sa.Connection) -> tuple[SchemaObject, ...]:
    """What is missing, tables first; the columns of a missing table are not listed."""
    postgresql = connection.dialect.name == "postgresql"
    rows = connection.execute(sa.text(_POSTGRESQL if postgresql else _SQLITE))
    there = {(kind, name) for kind, name in rows}
    gone = [one for one in _expected(functions() if postgresql else ()) if one not in there]
    tables = {name for kind, name in gone if kind == "table"}
    return tuple(
        (kind, name)
        for kind, name in gone
        if kind != "column" or name.partition(".")[0] not in tables
    )


def changed(connection: sa.Connection) -> tuple[SchemaObject, ...]:
    """The functions and triggers with another definition, or with a second one."""
    postgresql = connection.dialect.name == "postgresql"
    found = defaultdict(set)
    query = _POSTGRESQL_DEFINITIONS if postgresql else _SQLITE_DEFINITIONS
    for kind, name, text in connection.execute(sa.text(query)):
        found[kind, name].add(_normalized(text))
    expected = definitions(connection.dialect.name)
    return tuple(
        key for key, text in expected.items() if key in found and found[key] != {_normalized(text)}
    )


def _normalized(definition: str) -> str:
    """Without spaces and the name of the schema, and a trigger's condition without brackets."""
    for pattern, replacement in _AS_WRITTEN:
        definition = pattern.sub(replacement, definition)
    definition = _CONDITION.sub(lambda found: re.sub(r"[()]", "", found[0]), definition)
    return "".join(definition.split()).removesuffix(";").lower()


def listed(objects: tuple[SchemaObject, ...]) -> str:
    """As a sentence lists them: table spsa_event, view spsa_progress."""
    return ", ".join(f"{kind} {name}" for kind, name in objects)


def _expected(function_names: tuple[str, ...]) -> list[SchemaObject]:
    return [
        *(("table", name) for name in metadata.tables),
        *(("column", str(column)) for table in metadata.tables.values() for column in table.c),
        *(("view", name) for name in (*VIEWS, *PRIVATE_VIEWS)),
        *(("trigger", name) for name in triggers()),
        *(("function", name) for name in function_names),
    ]
