"""Uses files, uploads and batches through the unmodified clients of OpenAI and Anthropic."""
import io
import json
import sys
import time

import anthropic
import openai

origin, key = sys.argv[1], sys.argv[2]
client = openai.OpenAI(api_key=key, base_url=origin + "/api/v1", max_retries=0)
lines = "\n".join(
    json.dumps(
        {
            "custom_id": name,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {
                "model": "sandbox/chat:free",
                "messages": [{"role": "user", "content": "hello " + name}],
            },
        }
    )
    for name in ("a", "b")
).encode()

upload = client.uploads.create(
    bytes=len(lines), filename="in.jsonl", mime_type="application/jsonl", purpose="batch"
)
parts = [
    client.uploads.parts.create(upload.id, data=io.BytesIO(piece)).id
    for piece in (lines[:50], lines[50:])
]
file_id = client.uploads.complete(upload.id, part_ids=parts).file.id
assert client.files.content(file_id).read() == lines
assert client.files.wait_for_processing(file_id).status == "processed"
assert file_id in [each.id for each in client.files.list(purpose="batch")]
batch = client.batches.create(
    input_file_id=file_id, endpoint="/v1/chat/completions", completion_window="24h"
)
while batch.status not in ("completed", "failed"):
    time.sleep(0.1)
    batch = client.batches.retrieve(batch.id)
output = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
ids = sorted(line["custom_id"] for line in output)
assert client.files.delete(file_id).deleted
assert batch.id in [each.id for each in client.batches.list()]

claude = anthropic.Anthropic(api_key=key, base_url=origin, max_retries=0)
made = claude.messages.batches.create(
    requests=[
        {
            "custom_id": "m",
            "params": {
                "model": "sandbox/chat:free",
                "max_tokens": 50,
                "messages": [{"role": "user", "content": "hello"}],
            },
        }
    ]
)
while made.processing_status != "ended":
    time.sleep(0.1)
    made = claude.messages.batches.retrieve(made.id)
results = [(each.custom_id, each.result.type) for each in claude.messages.batches.results(made.id)]
deleted = claude.messages.batches.delete(made.id).type
print(json.dumps({"ids": ids, "counts": batch.request_counts.completed, "results": results, "deleted": deleted}))
