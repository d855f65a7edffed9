"""Fresh stores for measuring processes, in a folder that is deleted after the run."""

import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.postgres import NoPostgres, Postgres
from bench.targets import Store


class Stores:
    """SQLite files, and databases on one PostgreSQL server."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wakeful-bench-", dir=folder))
        self.postgres: Postgres | None = None
        self.no_postgres = ""
        self._count = 0

    def __enter__(self) -> Self:
        try:
            self.postgres = Postgres(self.folder / "pg")
        except (NoPostgres, OSError) as error:
            self.no_postgres = str(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.postgres is not None:
            self.postgres.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def new(self, kind: Store) -> str | None:
        """The address of an empty store; None if this kind is not available."""
        self._count += 1
        if kind == "postgres":
            return None if self.postgres is None else self.postgres.new_database()
        return str(self.folder / f"{self._count}.db")

    def discard(self, address: str) -> None:
        """Delete a file immediately; databases are dropped with the server."""
        if "://" not in address:
            for path in self.folder.glob(f"{Path(address).name}*"):
                path.unlink()
