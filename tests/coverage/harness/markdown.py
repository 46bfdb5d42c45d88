"""docs/coverage.md."""

from harness import summary
from harness.exporters import FORWARD_MODES, GENERATION_MODES
from harness.generation import TOKENS
from harness.results import Results

SHOWN = 40  # cases named per reason


def page(results: Results, partly: str = "") -> str:
    """The whole page; `partly` says what a run leaves out."""
    modes = [mode for mode in results.modes() if mode in FORWARD_MODES]
    generating = [mode for mode in results.modes() if mode in GENERATION_MODES]
    parts = ["# Coverage", introduction(results, partly), "## Totals", totals(results, modes), times(results, modes)]
    parts += ["## Verified sizes", verified(results, modes), "## Failures by reason", failures(results, modes)]
    if generating:
        parts += ["## Generation", generation(results, generating)]
    parts += ["## Architectures", architectures(results, results.modes()), "## Left out", left_out(results, "eager")]
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
    ties = len({r["case"] for mode in FORWARD_MODES for r in results.of_mode(mode) if r.get("first_of_equals")})
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
        for name, wanted in summary.kinds(results, modes)
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


def generation(results: Results, modes: list[str]) -> str:
    """The section on exports of the stages of generation."""
    records = [r for mode in modes for r in results.of_mode(mode)]
    count, passed = len(results.cases("generate")), [r for r in records if r["status"] == "passed"]
    parts = [
        f"{count} of the classes generate in eager. Each is taken apart by `decompose_for_generation`, its stages are exported "
        f"with dynamic sizes, and transformers' own `generate` runs with the stages answering for the model: {TOKENS} tokens, "
        "greedy, must be those of the model, exactly; what is generated as float32 must agree to 1e-4. No token ends the text. "
        "It runs with the traced prompt and with others of its size, and with other batches and lengths where eager takes "
        "them; prompts are padded on the left, inputs of encoders also on the right. ONNX runs in ONNX Runtime."
    ]
    ties, firsts = ({r["case"] for r in passed if r.get(key)} for key in ("ties", "first_of_equals"))
    if ties:
        parts.append(
            f"{len(ties)} models have scores that are the largest but for rounding, and choose another of their tokens. With "
            "eager's tokens given at every step, all their scores are eager's to 1e-4 of the largest: " + named(ties)
        )
    if firsts:
        parts.append(
            f"{len(firsts)} models in ONNX equal eager when its `topk` takes the first of equal scores: "
            + named(firsts)
        )
    parts += [totals(results, modes), times(results, modes), verified(results, modes)]
    static = {r["case"]: r for r in passed if r.get("static")}
    if static:
        lines = [f"- `{case}`: {', '.join(r['static'])} ({r['static_reason']})" for case, r in sorted(static.items())]
        parts += [
            "### Components with fixed sizes",
            "These can't be exported with dynamic sizes, the others of the model are.",
            "\n".join(lines),
        ]
    parts += [failures(results, modes), "### Not generating in eager", left_out(results, "generate")]
    return "\n\n".join(part for part in parts if part)


def named(names) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) + "."


def verified(results: Results, modes: list[str]) -> str:
    """How many of the dynamic exports that passed were verified at which other sizes."""
    rows = []
    for mode in (mode for mode in modes if not mode.endswith("-static")):
        passed = [r for r in results.of_mode(mode) if r["status"] == "passed"]
        for name in ("values", "batch 1", "batch 3", "image", "grids", "sample from file"):
            if name not in {label for record in passed for label in record.get("verified", ())}:
                continue
            count = sum(name in r.get("verified", ()) for r in passed)
            rows.append([mode, name, share(count, len(passed))])
    note = "Sizes that eager itself refuses are left out. Batches come with other lengths of text and audio where eager takes them."
    return note + "\n\n" + table(["mode", "inputs", "of those that passed"], rows) if rows else ""


def failures(results: Results, modes: list[str]) -> str:
    parts = []
    for reason, records in summary.failures_by_reason(results, modes):
        names: dict[str, list[str]] = {}
        for record in records:
            names.setdefault(record["case"], []).append(record["mode"])
        listed = [f"- `{case}` ({', '.join(modes)})" for case, modes in sorted(names.items())]
        if len(listed) > SHOWN:
            listed = [*listed[:SHOWN], f"- and {len(listed) - SHOWN} more"]
        where = sorted({r["where"] for r in records if r.get("where")})
        place = (
            f"\n\nIn `{where[0].replace('`', '')}`" + (f" and {len(where) - 1} more places." if len(where) > 1 else ".")
            if where
            else ""
        )
        parts.append(f"### {len(records)} × `{reason.replace('`', '')}`{place}\n\n" + "\n".join(listed))
    return "\n\n".join(parts) or "None."


def architectures(results: Results, modes: list[str]) -> str:
    rows = []
    for name, counts in summary.by_model_type(results).items():
        cells = [cell(*counts.get(mode, (0, 0))) for mode in modes]
        rows.append([name, *cells])
    return table(["model type", *modes], rows)


def cell(passed: int, total: int) -> str:
    if not total:
        return "–"
    return f"{passed}/{total}" if passed == total else f"**{passed}/{total}**"


def left_out(results: Results, mode: str) -> str:
    lines = [f"- `{r['case']}` [{r['stage']}] {summary.stable(r['reason'])}" for r in results.excluded(mode)]
    return "\n".join(lines) or "Nothing."
