"""docs/benchmarks.md: each benchmark writes a section of its own."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"


def write_section(title: str, text: str, page: Path = PAGE) -> None:
    """Replaces the section with that title, or adds it at the end; the others stay."""
    old = page.read_text() if page.is_file() else "# Benchmarks\n"
    sections = re.split(r"\n(?=## )", old.rstrip() + "\n")
    section = f"## {title}\n\n{text.strip()}\n"
    at = [index for index, one in enumerate(sections) if one.startswith(f"## {title}\n")]
    sections[at[0] if at else len(sections) :] = [section, *sections[at[0] + 1 :]] if at else [section]
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n".join(one.rstrip() + "\n" for one in sections))
