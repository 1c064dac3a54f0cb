"""JSON Schema of program JSON, made from the records that the reader decodes by.

Run `python -m tenferro_ref.program.schema` to print it; docs/program.schema.json is that text. A schema sees keys, types and
operand counts. It sees neither references between slots nor the ops' rules, and it takes 2.0 for an integer, which the reader
does not.
"""

from __future__ import annotations

import json

import msgspec

from tenferro_ref.program.records import VERSION, ExecRecord, GraphRecord


def schema_text() -> str:
    """The schema (draft 2020-12), as it is checked in."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"tenferro program JSON, version {VERSION}",
    }
    return json.dumps({**head, **msgspec.json.schema(GraphRecord | ExecRecord)}, indent=1) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
