"""The Python blocks of the documentation run as they stand; those of a section share their names."""

import re
import sys
import types

import pytest
import transporters
from conftest import ROOT

PAGES = ["docs/python.md", "README.md"]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Blocks of the README that name files which a reader has.
NEEDS_FILES = {"README.md": ["ExportedModel.from_pretrained"]}


def sections():
    for page in PAGES:
        text = (ROOT / page).read_text()
        for section in re.split(r"^(?=## )", text, flags=re.MULTILINE):
            title = section.splitlines()[0].lstrip("# ")
            blocks = [
                "\n" * (text[: text.index(section) + match.start(1)].count("\n")) + match.group(1)
                for match in FENCE.finditer(section)
                if not any(mark in match.group(1) for mark in NEEDS_FILES.get(page, []))
            ]
            if blocks:
                yield pytest.param(page, blocks, id=f"{page}: {title}")


@pytest.mark.parametrize("page, blocks", sections())
def test_the_blocks_of_a_section_run(page, blocks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("documentation")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with transporters.registrations():
        for block in blocks:
            exec(compile(block, str(ROOT / page), "exec"), module.__dict__)
