"""The files of one side, as the weights of a network, which a program makes of its values.

The program is part of the pinned source. It runs in an empty folder, with the values as a JSON
object on its standard input. Each file that it leaves there is named as the UCI option that takes
its path.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spsa.builds.artifacts import ArtifactStore, HashedFile
from spsa.builds.builder import explained
from spsa.builds.commands import Commands
from spsa.builds.source import Pinned
from spsa.builds.tree import disk_errors_as_tuning_errors
from spsa.core.uci_options import Declarations
from spsa.errors import BuildFailed

MAX_BYTES = 2**28
"""Of all files of a side: every worker fetches them for each iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMaker:
    """Runs `command`; a word of it that names a file of the pinned source becomes its path.

    `declared` are the options of the engine, `work` is a folder for temporary ones.
    """

    pinned: Pinned
    command: Sequence[str]
    declared: Declarations
    work: Path
    store: ArtifactStore
    timeout: float
    commands: Commands

    def made(self, side: str, values: Mapping[str, float]) -> dict[str, HashedFile]:
        """The files in the store by their options.

        Raises:
            BuildFailed: with what the program said, the side and the values.
        """
        here = self.pinned.path
        argv = [str(here / word) if (here / word).is_file() else word for word in self.command]
        self.work.mkdir(exist_ok=True)
        with (
            explained(side, values),
            disk_errors_as_tuning_errors(),
            tempfile.TemporaryDirectory(prefix="files-", dir=self.work) as folder,
        ):
            self.pinned.verify()
            (out := Path(folder, "files")).mkdir()
            given = json.dumps(dict(values)).encode()
            self.commands.run(argv, out, Path(folder, "logs"), self.timeout, given=given)
            written = sorted(out.iterdir())
            self._check(written)
            return {file.name: self.store.put(file) for file in written}

    def _check(self, written: Sequence[Path]) -> None:
        if not written:
            raise BuildFailed("the program wrote no file into the folder in which it runs")
        for file in written:
            if file.is_symlink() or not file.is_file():
                raise BuildFailed(f"the program made {file.name!r}, which is no regular file")
            if objection := self.declared.objection(file.name, str(file)):
                remedy = "a file is named as the option that takes its path"
                raise BuildFailed(f"the program wrote {file.name!r}: {objection}; {remedy}")
        if (size := sum(file.stat().st_size for file in written)) > MAX_BYTES:
            most = f"the files of a side have at most {MAX_BYTES:,}"
            raise BuildFailed(f"the program wrote {size:,} bytes; {most}")
