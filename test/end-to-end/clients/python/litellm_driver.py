"""Uses files, batches, pictures and sound through LiteLLM's unmodified client, in one process: its
import takes longer than all that it is asked here."""
import base64
import io
import json
import sys
import time

import litellm

origin, key = sys.argv[1], sys.argv[2]
base = origin + "/api/v1"


def batches():
    place = {"custom_llm_provider": "openai", "api_base": base, "api_key": key}
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
    file = litellm.create_file(file=("in.jsonl", io.BytesIO(lines)), purpose="batch", **place)
    batch = litellm.create_batch(
        completion_window="24h",
        endpoint="/v1/chat/completions",
        input_file_id=file.id,
        metadata={"night": "1"},
        **place,
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
    return {
        "status": batch.status,
        "ids": sorted(line["custom_id"] for line in output),
        "listed": created in listed,
        "cancelled": cancelled in ("cancelling", "cancelled", "completed"),
        "deleted": deleted,
    }


def media():
    shared = {"api_base": base, "api_key": key, "max_retries": 0}
    made = litellm.image_generation(
        prompt="a cat", model="openai/sandbox/image:free", size="512x512", **shared
    )
    picture = base64.b64decode(made.data[0].b64_json)
    edited = litellm.image_edit(
        image=[io.BytesIO(picture)], prompt="a dog", model="openai/sandbox/image:free", **shared
    )
    spoken = litellm.speech(
        model="openai/sandbox/speech:free", input="Hello", voice="alloy", response_format="wav", **shared
    )
    sound = spoken.content

    def named():
        file = io.BytesIO(sound)
        file.name = "a.wav"
        return file

    heard = litellm.transcription(model="openai/sandbox/transcribe:free", file=named(), **shared)
    verbose = litellm.transcription(
        model="openai/sandbox/transcribe:free", file=named(), response_format="verbose_json", **shared
    )
    return {
        "made": picture[1:4].decode(),
        "edited": base64.b64decode(edited.data[0].b64_json)[1:4].decode(),
        "spoken": sound[:4].decode(),
        "transcribed": str(len(sound)) in heard.text,
        "timed": verbose.duration > 0,
    }


print(json.dumps({"batches": batches(), "media": media()}))
