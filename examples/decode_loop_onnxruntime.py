#!/usr/bin/env python
"""Generates with one ONNX decode graph in ONNX Runtime: the prompt and then token by token, the cache written in place.

transporters export CHECKPOINT --to onnx --dynamic --generation --multi-token-decode --static-cache 64 --out DIR
python examples/decode_loop_onnxruntime.py DIR --ids 1,2,3 --max-new-tokens 20
"""

import argparse
from pathlib import Path

import numpy as np
import onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}


class Decoder:
    """A decode graph with its cache: buffers for `length` tokens that live as long as this object."""

    def __init__(self, folder: Path, length: int, threads: int = 0):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(folder / "decode.onnx", options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.length, self.past = length, 0
        # Entries that the graph writes to some places of: input and output may be one buffer.
        shared = self.session.get_modelmeta().custom_metadata_map.get("shared_buffers", "").split("\n")
        self.cache = {}
        for value in self.session.get_inputs():
            name = value.name.removeprefix("input.")
            if not name.startswith("cache."):
                continue
            sizes = [{"batch": 1, "cache_length": length}.get(size, size) for size in value.shape]
            self.cache[name] = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(sizes, TYPES[value.type]))
            self.binding.bind_ortvalue_input(value.name, self.cache[name])
            if name in shared:
                self.binding.bind_ortvalue_output(f"output.{name}", self.cache[name])
        self.others = [name for name in self.cache if name not in shared]
        # Outputs come back in the order in which they are bound.
        self.outputs = [*(f"output.{name}" for name in self.cache if name in shared), "logits"]
        self.outputs += [f"output.{name}" for name in self.others]

    def addresses(self) -> dict[str, int]:
        """Where the buffers of the cache are."""
        return {name: value.data_ptr() for name, value in self.cache.items() if name not in self.others}

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Logits of the last of the next tokens, ids of [1, count]."""
        places = np.arange(self.past, self.past + ids.shape[1])
        feeds = {
            "input_ids": ids,
            "position_ids": places[None],
            "attention_mask": (np.arange(self.length) <= places[:, None])[None, None],
        }
        for value in self.session.get_inputs():
            if value.name in feeds:
                self.binding.bind_cpu_input(value.name, feeds[value.name])
        for name in self.outputs[-1 - len(self.others) :]:
            self.binding.bind_output(name)
        self.session.run_with_iobinding(self.binding)
        made = dict(zip(self.outputs, self.binding.get_outputs()))
        for name in self.others:
            self.cache[name] = made[f"output.{name}"]
            self.binding.bind_ortvalue_input(f"input.{name}", self.cache[name])
        self.past += ids.shape[1]
        return made["logits"].numpy()[:, -1]


def generate(decoder: Decoder, prompt: list[int], count: int) -> list[int]:
    """The likeliest next tokens; at most those that the cache has room for."""
    ids, tokens = np.array([prompt]), []
    for _ in range(min(count, decoder.length - len(prompt) + 1)):
        ids = decoder(ids).argmax(-1)[:, None]
        tokens.append(int(ids[0, 0]))
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ids", required=True, help="the prompt: 1,2,3")
    parser.add_argument("--max-new-tokens", type=int, default=20)
    parser.add_argument("--cache-length", type=int, default=64, help="tokens that the cache has room for")
    arguments = parser.parse_args()
    decoder = Decoder(arguments.folder, arguments.cache_length)
    prompt = [int(token) for token in arguments.ids.split(",")]
    print(",".join(map(str, generate(decoder, prompt, arguments.max_new_tokens))))


if __name__ == "__main__":
    main()
