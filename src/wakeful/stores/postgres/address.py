"""The address of the database: a PostgreSQL URL, and the schema to use."""

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from wakeful.stores.postgres.migrate import DatabaseRefused

DEFAULT_SCHEMA: Final = "wakeful"
_SCHEMES: Final = ("postgresql", "postgres")
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,47}")  # written into statements without quotes


class Address(NamedTuple):
    """A server, a database, and a schema in it. Its repr contains no password."""

    conninfo: str
    schema: str

    def __repr__(self) -> str:
        return self.in_words

    @property
    def in_words(self) -> str:
        """The address without secrets, for messages."""
        known = conninfo_to_dict(self.conninfo)
        host, database = known.get("host") or "the local server", known.get("dbname") or "the default database"
        return f"schema {self.schema} of {database} on {host}"


def parse(url: str) -> Address:
    """Parse `postgresql://user@host/database?schema=name`; all other parameters are passed to libpq."""
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        raise DatabaseRefused("the address of a PostgreSQL store starts with postgresql://")
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise DatabaseRefused(f"schema {schema!r}: use lower-case letters, digits and _, at most 48, not pg_")
    query = urlencode([(name, value) for name, value in options if name != "schema"])
    conninfo = urlunsplit(parts._replace(query=query))
    if parts.netloc == "" and not conninfo.startswith(f"{parts.scheme}://"):  # urlunsplit drops an empty host
        conninfo = conninfo.replace(f"{parts.scheme}:", f"{parts.scheme}://", 1)
    try:
        conninfo_to_dict(conninfo)
    except ProgrammingError as error:
        raise DatabaseRefused(f"the address of the PostgreSQL store cannot be read: {error}") from error
    return Address(conninfo, schema)
