"""Whether the Attention op of opset 23 pays in ONNX Runtime against the attention that we write.

    .venv/bin/python benchmarks/attention_op.py [--opset 24] [--threads 1]

Graphs of 8 attentions in a row, sharing keys, values and a causal mask with padding, run in turns. Ratios are medians
over the pairs. "guarded" makes rows that attend to nothing zero, as ours does; "bare" leaves them to the runtime."""

import argparse
import statistics
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(3)

LAYERS = 8
# batch, heads, key heads, queries, keys, head_dim
SHAPES = [
    (1, 16, 8, 64, 64, 64),
    (4, 16, 8, 64, 64, 64),
    (4, 12, 12, 128, 128, 64),
    (1, 16, 8, 512, 512, 64),
    (4, 4, 4, 16, 16, 32),
    (1, 32, 8, 1, 512, 128),
]


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, value, dtype):
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def add(self, op, inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name


def model(kind, shape, opset):
    batch, heads, key_heads, queries, keys, width = shape
    rows = heads // key_heads * queries
    g = Graph()
    scale = 1 / np.sqrt(width)
    zero, scale_value = g.constant("zero", 0, np.float32), g.constant("scale", scale, np.float32)
    counts = g.add("ReduceSum", [g.add("Cast", ["mask"], to=TensorProto.INT32), g.constant("last", [-1], np.int64)])
    empty = g.add("Equal", [counts, g.constant("none", 0, np.int32)])
    bias = g.add("Where", ["mask", zero, g.constant("lowest", -np.inf, np.float32)])
    sizes = {
        name: g.constant(name, value, np.int64)
        for name, value in {
            "grouped": [batch, key_heads, rows, width],
            "scores": [batch, heads, queries, keys],
            "weights": [batch, key_heads, rows, keys],
            "output": [batch, heads, queries, width],
        }.items()
    }

    def reshape(value, name):
        return g.add("Reshape", [value, sizes[name]]) if heads != key_heads else value

    x = "query"
    for _ in range(LAYERS):
        if kind == "ours":
            transposed = g.add("Transpose", ["key"], perm=[0, 1, 3, 2])
            scores = g.add("MatMul", [reshape(g.add("Mul", [x, scale_value]), "grouped"), transposed])
            weights = g.add("Softmax", [g.add("Add", [reshape(scores, "scores"), bias])], axis=-1)
            x = reshape(g.add("MatMul", [reshape(weights, "weights"), "value"]), "output")
        else:
            x = g.add("Attention", [x, "key", "value", "mask"], scale=float(scale))
        if kind != "bare":
            x = g.add("Where", [empty, zero, x])
    inputs = {
        "query": (TensorProto.FLOAT, [batch, heads, queries, width]),
        "key": (TensorProto.FLOAT, [batch, key_heads, keys, width]),
        "value": (TensorProto.FLOAT, [batch, key_heads, keys, width]),
        "mask": (TensorProto.BOOL, [batch, 1, queries, keys]),
    }
    graph = helper.make_graph(
        g.nodes,
        kind,
        [helper.make_tensor_value_info(name, *info) for name, info in inputs.items()],
        [helper.make_tensor_value_info(x, *inputs["query"])],
        g.constants,
    )
    opsets = [helper.make_opsetid("", opset)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))
    return made.SerializeToString()


def feeds(shape):
    batch, heads, key_heads, queries, keys, width = shape
    random = np.random.default_rng(0)
    mask = np.tril(np.ones((queries, keys), bool), keys - queries)[None, None].repeat(batch, 0)
    mask[0, :, :, :3] = False  # padding on the left: the first queries see nothing
    return {
        "query": random.standard_normal((batch, heads, queries, width), np.float32),
        "key": random.standard_normal((batch, key_heads, keys, width), np.float32),
        "value": random.standard_normal((batch, key_heads, keys, width), np.float32),
        "mask": mask,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opset", type=int, default=23)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    print("| batch, heads, key heads, queries, keys, width | ours, ms | guarded / ours | bare / ours |")
    print("|---|---|---|---|")
    for shape in SHAPES:
        sessions = {
            kind: onnxruntime.InferenceSession(model(kind, shape, arguments.opset), options)
            for kind in ("ours", "guarded", "bare")
        }
        inputs = feeds(shape)
        outputs = {kind: session.run(None, inputs)[0] for kind, session in sessions.items()}
        np.testing.assert_allclose(outputs["guarded"], outputs["ours"], rtol=0, atol=1e-4)
        start = time.perf_counter()
        sessions["ours"].run(None, inputs)
        rounds = max(15, min(150, int(2 / (time.perf_counter() - start))))
        seconds = {kind: [] for kind in sessions}
        for turn in range(rounds):
            for kind in list(sessions)[:: 1 if turn % 2 else -1]:
                start = time.perf_counter()
                sessions[kind].run(None, inputs)
                seconds[kind].append(time.perf_counter() - start)
        ratios = [
            statistics.median(a / b for a, b in zip(seconds[kind], seconds["ours"])) for kind in ("guarded", "bare")
        ]
        print(f"| {shape} | {min(seconds['ours']) * 1e3:.2f} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
