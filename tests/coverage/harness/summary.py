"""Sums of a run's records: totals per mode and kind of model, failures by reason, and the list that is checked in."""

import re
import statistics
from collections import defaultdict

from harness.results import Results, baseline

GROUPS = ("text", "vision", "audio", "multimodal", "other")
FAMILIES = ("MoE", "SSM", "encoder-decoder")
KEPT = 160  # characters of a reason in the checked-in list


def model_type(case: str) -> str:
    return case.split("/")[0]


def counted(results: Results, mode: str, wanted=lambda case: True) -> tuple[int, int]:
    """(passed, all) cases of a mode among those whose record of eager, or of its generate, is wanted."""
    records = [r for r in results.of_mode(mode) if wanted(results.of_case(r))]
    return sum(r["status"] == "passed" for r in records), len(records)


def kinds(results: Results, modes: list[str]) -> list[tuple[str, object]]:
    """(name, whether an eager record is of it) for all cases of these modes, each group and each family."""

    def in_group(name):
        return lambda eager: eager.get("group") == name

    def in_family(name):
        return lambda eager: name in eager.get("families", ())

    rows = [("all", lambda eager: True)]
    rows += [(name, in_group(name)) for name in GROUPS] + [(name, in_family(name)) for name in FAMILIES]
    return [(name, wanted) for name, wanted in rows if any(counted(results, m, wanted)[1] for m in modes)]


def export_seconds(results: Results, mode: str) -> list[float]:
    """Export times of a mode's cases that passed, sorted."""
    return sorted(r["export_s"] for r in results.of_mode(mode) if r["status"] == "passed")


def median(values: list[float]) -> float:
    return statistics.median(values) if values else float("nan")


def stable(reason: str) -> str:
    """A reason without what differs between runs: addresses, temporary folders, process ids."""
    reason = re.sub(r"0x[0-9a-fA-F]{6,}", "0x…", reason)
    return re.sub(r"/tmp/[\w./-]+", "/tmp/…", reason)[:KEPT].strip()


def kind_of_reason(record: dict) -> str:
    """What failures with the same cause share: stage and reason, without the inputs' label, numbers and the tensor."""
    reason = re.sub(r"^(values|batch \d|image|sample)( from file| by package)?: ", "", record.get("reason", ""))
    if record.get("stage") == "verify":
        # The tensor and its numbers differ from case to case; what is wrong with it doesn't.
        reason = re.sub(r"^\S+: ", "", reason).split(",")[0]
    return f"{record.get('stage')}: " + re.sub(r"\d+(\.\d+)?(e-?\d+)?", "N", stable(reason))


def failures_by_reason(results: Results, modes: list[str]) -> list[tuple[str, list[dict]]]:
    """Failing records of these modes grouped by the kind of reason, the most frequent first."""
    found = defaultdict(list)
    for mode in modes:
        for record in results.of_mode(mode):
            if record["status"] != "passed":
                found[kind_of_reason(record)].append(record)
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


def by_model_type(results: Results) -> dict[str, dict[str, tuple[int, int]]]:
    """(passed, all) per model type and mode."""
    table: dict = defaultdict(dict)
    for mode in results.modes():
        for record in results.of_mode(mode):
            passed, total = table[model_type(record["case"])].get(mode, (0, 0))
            table[model_type(record["case"])][mode] = (passed + (record["status"] == "passed"), total + 1)
    return dict(sorted(table.items()))


def statuses(results: Results) -> dict:
    """What is checked in: cases that eager doesn't run, those with which it doesn't generate, and per mode those that
    fail, with reasons. All others pass."""
    failing = {
        mode: {
            r["case"]: f"{r['status']} [{r['stage']}] {stable(r['reason'])}"
            for r in results.of_mode(mode)
            if r["status"] != "passed"
        }
        for mode in results.modes()
    }
    excluded, not_generating = (
        {r["case"]: f"[{r['stage']}] {stable(r['reason'])}" for r in results.excluded(mode)}
        for mode in ("eager", "generate")
    )
    return {"excluded": excluded, "not generating": not_generating, "failing": failing}


def compared(results: Results, before: dict) -> tuple[list[str], list[str]]:
    """(regressions, improvements) of a run, maybe of some cases only, against the checked-in statuses."""
    now, worse, better = statuses(results), [], []
    if "not generating" not in before:  # a list from before generation was a mode
        before = {**before, "not generating": now["not generating"]}
    for kind, what in (("excluded", "run it"), ("not generating", "generate with it")):
        for case, reason in now[kind].items():
            if case not in before[kind]:
                worse.append(f"{case}: eager does not {what} any more: {reason}")
    for mode in results.modes():
        kind = "not generating" if baseline(mode) == "generate" else "excluded"
        listed = before["failing"].get(mode)
        if listed is None:  # a mode that is new
            continue
        for record in results.of_mode(mode):
            case = record["case"]
            fails, failed = case in now["failing"][mode], case in listed or case in before[kind]
            if fails and not failed:
                worse.append(f"{case} {mode}: {now['failing'][mode][case]}")
            elif not fails and case in listed:
                better.append(f"{case} {mode}")
    return sorted(worse), sorted(better)


def as_json(results: Results) -> dict:
    """The whole run per architecture: status, reason and seconds of every case and mode."""
    architectures: dict = defaultdict(dict)
    for case in sorted({*results.cases(), *results.cases("generate")}):
        modes = {}
        for mode in results.modes():
            record = results.records.get((case, mode))
            if record:
                kept = (
                    "status",
                    "stage",
                    "reason",
                    "where",
                    "export_s",
                    "verify_s",
                    "verified",
                    "components",
                    "static",
                )
                modes[mode] = {key: record[key] for key in kept if key in record}
        architectures[model_type(case)][case] = modes
    totals = {mode: dict(zip(("passed", "cases"), counted(results, mode))) for mode in results.modes()}
    return {"runs": results.runs, "totals": totals, "architectures": dict(architectures), **statuses(results)}
