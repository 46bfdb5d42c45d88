"""docs/coverage.md."""

from harness import summary
from harness.exporters import MODES
from harness.results import Results

SHOWN = 40  # cases named per reason


def page(results: Results, partly: str = "") -> str:
    """The whole page; `partly` says what a run leaves out."""
    modes = results.modes()
    parts = ["# Coverage", introduction(results, partly), "## Totals", totals(results, modes), times(results, modes)]
    parts += ["## Verified sizes", verified(results), "## Failures by reason", failures(results)]
    parts += ["## Architectures", architectures(results, modes), "## Left out", left_out(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def introduction(results: Results, partly: str) -> str:
    count, left = len(results.cases()), len(results.excluded())
    run = results.runs[-1] if results.runs else {}
    seconds = sum(r["seconds"] for r in results.runs)
    text = (
        f"Made by `make coverage`: {count} tiny models, one per class of transformers {run.get('transformers', '?')}'s auto "
        "mappings, exported in-process, run and compared with eager: float32 to 1e-4 of a tensor's largest value, integers "
        "exactly, NaN and infinity at the same places; models that are random by sizes or ranks only. Static exports are verified "
        "with the traced inputs and with other values and padding, dynamic ones also at other sizes. ONNX runs from its "
        "file in ONNX Runtime; `.pt2` runs through the program, and for a part of the models (below) also from the file "
        f"through `torch.export.load`. Afterwards the model must be bit for bit what it was. {left} more cases don't run in eager and aren't counted."
    )
    ties = len({r["case"] for mode in results.modes() for r in results.of_mode(mode) if r.get("first_of_equals")})
    if ties:
        text += (
            f" torch's `topk` takes any of equal scores, ONNX's `TopK` the first: {ties} models in ONNX equal eager when its "
            "`topk` does so, too."
        )
    if run:
        text += (
            f"\n\n{run['jobs']} processes on {run['cores']} cores, torch {run['torch']}, {run['timeout']:g} s at most for "
            f"each export with its verification; {seconds / 60:.0f} minutes."
        )
    if run and run["exporter"] != "transporters":
        text += f"\n\nThis is a run of another exporter: {run['exporter']}."
    return text + (f"\n\n**Not the whole zoo: {partly}.**" if partly else "")


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def share(passed: int, total: int) -> str:
    return f"{passed}/{total} ({100 * passed / total:.1f} %)" if total else "–"


def totals(results: Results, modes: list[str]) -> str:
    rows = [
        [name, *(share(*summary.counted(results, mode, wanted)) for mode in modes)]
        for name, wanted in summary.kinds(results)
    ]
    return table(["models", *modes], rows)


def times(results: Results, modes: list[str]) -> str:
    rows = []
    for mode in modes:
        seconds = summary.export_seconds(results, mode)
        if seconds:
            tail = seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))]
            rows.append([mode, f"{summary.median(seconds):.3f}", f"{tail:.3f}", f"{seconds[-1]:.2f}"])
    return table(["export seconds", "median", "95 % are below", "most"], rows) if rows else ""


def verified(results: Results) -> str:
    """How many of the dynamic exports that passed were verified at which other sizes."""
    rows = []
    for mode in (mode for mode in MODES if mode.endswith("-dynamic") and mode in results.modes()):
        passed = [r for r in results.of_mode(mode) if r["status"] == "passed"]
        for name in ("values", "batch 1", "batch 3", "image", "grids", "sample from file"):
            if name not in {label for record in passed for label in record.get("verified", ())}:
                continue
            count = sum(name in r.get("verified", ()) for r in passed)
            rows.append([mode, name, share(count, len(passed))])
    note = "Sizes that eager itself refuses are left out. Batches come with other lengths of text and audio where eager takes them."
    return note + "\n\n" + table(["mode", "inputs", "of those that passed"], rows) if rows else ""


def failures(results: Results) -> str:
    parts = []
    for reason, records in summary.failures_by_reason(results):
        names: dict[str, list[str]] = {}
        for record in records:
            names.setdefault(record["case"], []).append(record["mode"])
        listed = [f"- `{case}` ({', '.join(modes)})" for case, modes in sorted(names.items())]
        if len(listed) > SHOWN:
            listed = [*listed[:SHOWN], f"- and {len(listed) - SHOWN} more"]
        where = sorted({r["where"] for r in records if r.get("where")})
        place = f"\n\nIn `{where[0].replace('`', '')}`" + (f" and {len(where) - 1} more places." if len(where) > 1 else ".") if where else ""
        parts.append(f"### {len(records)} × `{reason.replace('`', '')}`{place}\n\n" + "\n".join(listed))
    return "\n\n".join(parts) or "None."


def architectures(results: Results, modes: list[str]) -> str:
    rows = []
    for name, counts in summary.by_model_type(results).items():
        cells = [f"{passed}/{total}" if passed == total else f"**{passed}/{total}**" for passed, total in
                 (counts.get(mode, (0, 0)) for mode in modes)]
        rows.append([name, *cells])
    return table(["model type", *modes], rows)


def left_out(results: Results) -> str:
    lines = [f"- `{r['case']}` [{r['stage']}] {summary.stable(r['reason'])}" for r in results.excluded()]
    return "\n".join(lines) or "Nothing."
