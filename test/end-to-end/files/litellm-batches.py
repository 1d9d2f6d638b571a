"""Uses files and batches through LiteLLM's unmodified client."""
import io
import json
import sys
import time

import litellm

origin, key = sys.argv[1], sys.argv[2]
place = {"custom_llm_provider": "openai", "api_base": origin + "/api/v1", "api_key": key}
lines = "\n".join(
    json.dumps(
        {
            "custom_id": name,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "sandbox/chat:free", "messages": [{"role": "user", "content": "hello " + name}]},
        }
    )
    for name in ("a", "b")
).encode()

file = litellm.create_file(file=("in.jsonl", io.BytesIO(lines)), purpose="batch", **place)
batch = litellm.create_batch(
    completion_window="24h", endpoint="/v1/chat/completions", input_file_id=file.id, metadata={"night": "1"}, **place
)
created = batch.id
while batch.status not in ("completed", "failed"):
    time.sleep(0.1)
    batch = litellm.retrieve_batch(batch_id=created, **place)
content = litellm.file_content(file_id=batch.output_file_id, **place)
output = [json.loads(line) for line in content.text.splitlines()]
listed = [each.id for each in litellm.list_batches(**place).data]
second = litellm.create_batch(
    completion_window="24h", endpoint="/v1/chat/completions", input_file_id=file.id, **place
)
cancelled = litellm.cancel_batch(batch_id=second.id, **place).status
deleted = litellm.file_delete(file_id=file.id, **place).deleted
print(
    json.dumps(
        {
            "status": batch.status,
            "ids": sorted(line["custom_id"] for line in output),
            "listed": created in listed,
            "cancelled": cancelled in ("cancelling", "cancelled", "completed"),
            "deleted": deleted,
        }
    )
)
