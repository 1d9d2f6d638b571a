"""Makes and changes pictures, and hears sound, through Google's unmodified client."""
import base64
import json
import sys

from google import genai
from google.genai import types

origin, key, model, pixel = sys.argv[1:5]
client = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=origin))
config = types.GenerateContentConfig(
    response_modalities=["TEXT", "IMAGE"],
    image_config=types.ImageConfig(aspect_ratio="16:9"),
)


def pictures(answer):
    return [
        base64.b64encode(part.inline_data.data).decode()
        for candidate in answer.candidates or []
        for part in (candidate.content.parts if candidate.content else None) or []
        if part.inline_data
    ]


made = client.models.generate_content(model=model, contents="a cat", config=config)
sent = types.Part.from_bytes(data=base64.b64decode(pixel), mime_type="image/png")
changed = client.models.generate_content(model=model, contents=["a dog", sent], config=config)
streamed = []
for chunk in client.models.generate_content_stream(model=model, contents=["a dog", sent], config=config):
    streamed += pictures(chunk)
chat = client.chats.create(model=model, config=config)
first = chat.send_message("a cat")
second = chat.send_message("now at night")
print(
    json.dumps(
        {
            "made": pictures(made),
            "text": made.text,
            "tokens": made.usage_metadata.candidates_token_count,
            "changed": pictures(changed),
            "streamed": streamed,
            "turns": [pictures(first), pictures(second)],
        }
    )
)
