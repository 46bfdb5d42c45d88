#!/usr/bin/env python
"""Generates with one decode graph in PyTorch: the prompt and then token by token, the cache written in place.

transporters export CHECKPOINT --to dynamo --dynamic --generation --multi-token-decode --static-cache 64 --out DIR
python examples/decode_loop_torch.py DIR --ids 1,2,3 --max-new-tokens 20
"""

import argparse
import copy
from pathlib import Path

import torch
from transformers.exporters.base import ExportedModel


class Decoder:
    """A decode graph with its cache, whose buffers live as long as this object."""

    def __init__(self, folder: Path):
        # Registers the classes of the cache with torch before the program is loaded.
        component = ExportedModel.from_pretrained(folder, trust_remote_code=True).components["decode"]
        self.module = component.program.module()
        self.past = 0
        # The sample that the archive carries has a cache of the right structure; sizes but for the batch are fixed.
        self.cache = copy.deepcopy(component.program.example_inputs[1]["cache"])
        for layer in self.cache.layers:
            layer.keys = torch.zeros_like(layer.keys[:1])
            layer.values = torch.zeros_like(layer.values[:1])
            layer.cumulative_length = torch.zeros_like(layer.cumulative_length)
        self.length = self.cache.layers[0].keys.shape[2]

    def addresses(self) -> list[int]:
        """Where the buffers of the cache are."""
        return [tensor.data_ptr() for layer in self.cache.layers for tensor in (layer.keys, layer.values)]

    @torch.no_grad()
    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits of the last of the next tokens, ids of [1, count]."""
        places = torch.arange(self.past, self.past + ids.shape[1])
        mask = (torch.arange(self.length) <= places[:, None])[None, None]
        output = self.module(input_ids=ids, attention_mask=mask, position_ids=places[None], cache=self.cache)
        self.past += ids.shape[1]
        return output.logits[:, -1]


def generate(decoder: Decoder, prompt: list[int], count: int) -> list[int]:
    """The likeliest next tokens; at most those that the cache has room for."""
    ids, tokens = torch.tensor([prompt]), []
    for _ in range(min(count, decoder.length - len(prompt) + 1)):
        ids = decoder(ids).argmax(-1, keepdim=True)
        tokens.append(int(ids))
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ids", required=True, help="the prompt: 1,2,3")
    parser.add_argument("--max-new-tokens", type=int, default=20)
    arguments = parser.parse_args()
    prompt = [int(token) for token in arguments.ids.split(",")]
    print(",".join(map(str, generate(Decoder(arguments.folder), prompt, arguments.max_new_tokens))))


if __name__ == "__main__":
    main()
