"""Records of a run as JSON lines: appended while it runs, read back to resume, to report and to check."""

import json
from pathlib import Path

from harness.exporters import GENERATION_MODES, MODES


class Results:
    """The last record of every case and mode of a file of JSON lines, and what the runs were."""

    def __init__(self, path: Path):
        self.path, self.runs, self.records = Path(path), [], {}
        if self.path.is_file():
            for line in self.path.read_text().splitlines():
                try:
                    self._take(json.loads(line))
                except json.JSONDecodeError:  # the line that an interrupted run was writing
                    continue

    def _take(self, record: dict) -> None:
        if "run" in record:
            self.runs.append(record["run"])
        else:
            self.records[record["case"], record["mode"]] = record

    def append(self, record: dict) -> None:
        """Adds a record, on disk at once."""
        self._take(record)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def missing(self, names: list[str], modes: list[str]) -> list[dict]:
        """Tasks for the cases that lack some of the modes."""
        tasks = []
        for name in names:
            left = [mode for mode in modes if (name, mode) not in self.records and not self._is_out(name, mode)]
            if left:
                tasks.append({"case": name, "modes": left})
        return tasks

    def _is_out(self, name: str, mode: str) -> bool:
        """Whether it is known that a case doesn't count in a mode."""
        return (name, baseline(mode)) in self.records and not self.counts(name, mode)

    def counts(self, name: str, mode: str = "eager") -> bool:
        """Whether a case counts in a mode: eager runs it, or generates with it."""
        return self.records.get((name, baseline(mode)), {}).get("status") == "passed"

    def cases(self, mode: str = "eager") -> list[str]:
        """Cases that eager runs, sorted."""
        wanted = baseline(mode)
        return sorted(name for name, recorded in self.records if recorded == wanted and self.counts(name, mode))

    def excluded(self, mode: str = "eager") -> list[dict]:
        """Records of the cases that eager doesn't run; classes that don't generate are none of them."""
        wanted = baseline(mode)
        return [
            r
            for (_, recorded), r in sorted(self.records.items())
            if recorded == wanted and r["status"] not in ("passed", "none")
        ]

    def of_case(self, record: dict) -> dict:
        """The record of what a record's case is, in the record's mode."""
        return self.records[record["case"], baseline(record["mode"])]

    def modes(self) -> list[str]:
        return [mode for mode in MODES if any(recorded == mode for _, recorded in self.records)]

    def of_mode(self, mode: str) -> list[dict]:
        """The records of a mode, sorted by case."""
        return [
            r for (name, recorded), r in sorted(self.records.items()) if recorded == mode and self.counts(name, mode)
        ]


def baseline(mode: str) -> str:
    """The mode of the records that say whether a case counts in a mode."""
    return "generate" if mode in (*GENERATION_MODES, "generate") else "eager"
