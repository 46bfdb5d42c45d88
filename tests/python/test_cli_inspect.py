"""`transporters inspect` and `transporters list`."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from conftest import error_line
from safetensors.numpy import load_file


@pytest.mark.parametrize("format, op", [("onnx", "MatMul"), ("dynamo", "aten::linear")])
def test_inspect_tells_of_exports(cli, exports, format, op):
    report = json.loads(cli("inspect", exports("llama", format), "--json").stdout)
    model = report["components"]["model"]
    assert model["architecture"] == "LlamaForCausalLM"
    assert [value["name"] for value in model["inputs"]] == ["input_ids", "attention_mask"]
    assert "batch" in model["inputs"][0]["type"]
    assert op in {row["op"] for row in model["ops"]}
    assert sum(row["count"] for row in model["ops"]) == model["nodes"]
    assert sum(row["bytes"] for row in model["weights"]["by_module"]) == model["weights"]["bytes"]
    text = cli("inspect", exports("llama", format)).stdout
    assert op in text and "by_module" in text


def test_inspect_tells_of_checkpoints(cli, tiny_checkpoint):
    folder = tiny_checkpoint("qwen3")
    report = json.loads(cli("inspect", folder, "--json").stdout)
    assert report["model_type"] == "qwen3"
    tensors = load_file(folder / "model.safetensors")
    assert report["weights"]["tensors"] == len(tensors)
    assert report["weights"]["bytes"] == sum(tensor.nbytes for tensor in tensors.values())
    assert report["weights"]["by_dtype"][0]["dtype"] == "float32"
    same = json.loads(cli("inspect", folder / "model.safetensors", "--json").stdout)
    assert same["weights"] == report["weights"]


def test_inspect_refuses_what_it_does_not_know(cli, tmp_path):
    (tmp_path / "x.txt").write_text("no model")
    assert "expected a .pt2, .onnx or .safetensors" in error_line(cli("inspect", tmp_path / "x.txt", code=1))
    assert "neither export.json nor config.json" in error_line(cli("inspect", tmp_path, code=1))


def test_inspect_reads_torchs_own_pt2(cli, tmp_path):
    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x) + 1

    program = torch.export.export(Net(), (torch.ones(2, 3),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    torch.export.save(program, tmp_path / "net.pt2")
    report = json.loads(cli("inspect", tmp_path / "net.pt2", "--json").stdout)
    assert {row["op"] for row in report["ops"]} >= {"aten::relu"}
    assert report["weights"]["tensors"] == 0


class Page(HTMLParser):
    """Reads a page: its text, what it refers to, and whether its tags are balanced."""

    VOID = {"meta", "input", "br", "link", "img", "hr"}

    def __init__(self, html):
        super().__init__()
        self.open, self.text, self.references, self.tags, self.cells = [], [], [], set(), []
        self.modules, self.path = set(), []
        self.feed(html)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.references += [value for name, value in attributes if name in ("src", "href", "srcset", "action", "data")]
        if tag == "summary":
            self.modules.add(dict(attributes)["title"])
        if tag == "td":
            self.cells.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


@pytest.mark.parametrize("format", ["onnx", "dynamo"])
@pytest.mark.parametrize("model_type", ["bert", "qwen3"])
def test_inspect_writes_a_page(cli, exports, tmp_path, model_type, format):
    folder = exports(model_type, format)
    file = tmp_path / "page.html"
    report = json.loads(cli("inspect", folder, "--html", file, "--json").stdout)["components"]["model"]
    html = file.read_text(encoding="utf-8")
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert page.references == [] and "http:" not in html and "https:" not in html
    cells = page.cells
    for row in report["ops"]:
        assert (row["op"], f"{row['count']:,}") in zip(cells, cells[1:])
    for value in report["inputs"] + report["outputs"]:
        assert cells[cells.index(value["name"]) + 1] == value["type"]
    for row in report["constraints"]:
        assert cells[cells.index(row["size"]) + 1] == row["range"]
    assert {row["size"] for row in report["constraints"]} >= {"batch", "sequence"}
    layer = {"bert": "encoder.layer.1.attention.self.query", "qwen3": "model.layers.1.self_attn.q_proj"}[model_type]
    parts = layer.split(".")
    assert {".".join(parts[:i]) for i in range(len(parts) + 1)} <= page.modules
    assert any(cell.startswith(layer + ".weight") for cell in cells)
    assert cells.count("MatMul" if format == "onnx" else "aten::linear") > 10
    again = tmp_path / "again.html"
    cli("inspect", folder, "--html", again)
    assert again.read_bytes() == file.read_bytes()


def test_a_page_counts_tied_weights_once(cli, tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = torch.nn.Embedding(64, 8), torch.nn.Linear(8, 64, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    torch.export.save(torch.export.export(Net(), (torch.tensor([[1, 2]]),)), tmp_path / "net.pt2")
    cli("inspect", tmp_path / "net.pt2", "--html", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Tied weights, counted once" in page.text
    assert "1 tensor, 2.0 kB" in page.text
    names = {"embed.weight", "head.weight"}
    assert any({first, second} == names for first, second in zip(page.cells, page.cells[1:]))
    assert {"", "embed", "head"} & page.modules >= {"", "head"}


def test_a_page_escapes_what_a_file_says(cli, tmp_path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    hostile = "</summary><script>alert('1')</script><img src=\"http://evil/\">&amp;.\u202eb\x01"
    x = helper.make_tensor_value_info(hostile, TensorProto.FLOAT, ["<b>n</b>"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weight = numpy_helper.from_array(np.ones(1, np.float32), "w" + hostile)
    node = helper.make_node("Add", [hostile, "w" + hostile], ["y"], name=hostile + "/y")
    model = helper.make_model(helper.make_graph([node], "graph", [x], [y], [weight]), producer_name=hostile)
    onnx.save(model, tmp_path / "<i>.onnx")
    file = tmp_path / "page.html"
    cli("inspect", tmp_path / "<i>.onnx", "--html", file)
    html = file.read_text(encoding="utf-8")
    page = Page(html)
    shown = hostile.replace("\x01", "\ufffd")
    assert page.references == [] and "img" not in page.tags and "i" not in page.tags and "b" in page.tags
    assert html.count("<script>") == 1
    assert shown in page.cells and "w" + shown in page.cells
    assert shown in page.modules


def test_a_page_of_a_checkpoint_tells_its_weights(cli, tiny_checkpoint, tmp_path):
    folder = tiny_checkpoint("bert")
    cli("inspect", folder, "--html", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert set(load_file(folder / "model.safetensors")) <= set(page.cells)
    assert "encoder.layer.0.output.dense" in page.modules


def test_list_tells_what_is_there(cli):
    report = json.loads(cli("list", "--json").stdout)
    assert {"bert", "llama", "qwen3"} <= set(report["architectures"])
    assert "Qwen3ForCausalLM" in report["architectures"]["qwen3"]
    assert report["targets"] == ["dynamo", "onnx"]
    assert "aten::softmax.int" in report["ops"] or "aten::softmax" in report["ops"]
    assert set(report["patches"]) == set(report["fixes"]) == {"dynamo", "onnx"}
    assert "Qwen3ForCausalLM" in cli("list", "architectures").stdout
