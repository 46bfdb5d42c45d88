"""Writes the field numbers and enums of onnx.proto as C++ enums: generate_onnx_schema.py ONNX_PROTO OUTPUT."""

import re
import sys


def tokens(text):
    text = re.sub(r"//[^\n]*", "", text)
    return re.findall(r'"[^"]*"|[\w.]+|[{}=;\[\]<>,()]', text)


def parse(stream):
    """Yields (kind, qualified name, [(entry, number)]) for every message and enum, nested ones first."""
    found = []
    scopes = []  # (kind, name, entries)
    position = 0
    while position < len(stream):
        token = stream[position]
        if token in ("message", "enum", "oneof") and stream[position + 2] == "{":
            scopes.append((token, stream[position + 1], []))
            position += 3
        elif token == "}":
            kind, name, entries = scopes.pop()
            if kind == "oneof":  # its fields belong to the message around it
                scopes[-1][2].extend(entries)
            else:
                outer = [scope[1] for scope in scopes if scope[0] == "message"]
                found.append((kind, "_".join(outer + [name]), entries))
            position += 1
        elif token == "=" and scopes:
            scopes[-1][2].append((stream[position - 1], int(stream[position + 1], 0)))
            position = stream.index(";", position) + 1
        else:
            position += 1
    return found


def main():
    source, output = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        found = parse(tokens(file.read()))
    lines = [
        "// Generated from onnx.proto by cmake/generate_onnx_schema.py; do not edit.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace transporters::onnx::proto {",
    ]
    for kind, name, entries in found:
        underlying = "uint32_t" if kind == "message" else "int32_t"
        lines += ["", f"enum class {name} : {underlying} {{"]
        lines += [f"  {entry} = {number}," for entry, number in entries]
        lines.append("};")
    lines += ["", "}  // namespace transporters::onnx::proto", ""]
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()
