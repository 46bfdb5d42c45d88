"""Records of a run as JSON lines: appended while it runs, read back to resume, to report and to check."""

import json
from pathlib import Path

from harness.exporters import MODES


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
            if not self.counts(name) and (name, "eager") in self.records:
                continue
            left = [mode for mode in modes if (name, mode) not in self.records]
            if left:
                tasks.append({"case": name, "modes": left})
        return tasks

    def counts(self, name: str) -> bool:
        """Whether a case counts: eager runs it."""
        return self.records.get((name, "eager"), {}).get("status") == "passed"

    def cases(self) -> list[str]:
        """Cases that eager runs, sorted."""
        return sorted(name for name, mode in self.records if mode == "eager" and self.counts(name))

    def excluded(self) -> list[dict]:
        return [r for (name, mode), r in sorted(self.records.items()) if mode == "eager" and r["status"] != "passed"]

    def modes(self) -> list[str]:
        return [mode for mode in MODES if any(recorded == mode for _, recorded in self.records)]

    def of_mode(self, mode: str) -> list[dict]:
        """The records of a mode, sorted by case."""
        return [r for (name, recorded), r in sorted(self.records.items()) if recorded == mode and self.counts(name)]
