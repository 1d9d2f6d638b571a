"""Asks a gateway over the sockets of OpenAI's client, and prints what came back as JSON."""

import json
import sys

from openai import OpenAI

base_url, key, secret = sys.argv[1:4]
client = OpenAI(base_url=base_url, api_key=key)
found = {}

with client.responses.connect() as connection:
    texts = []
    previous = None
    for text in ["Hello", "Again"]:
        extra = {} if previous is None else {"previous_response_id": previous}
        connection.response.create(model="sandbox/chat:free", input=text, store=False, **extra)
        for event in connection:
            if event.type == "response.completed":
                previous = event.response.id
                texts.append(event.response.output_text)
                break
    found["responses"] = texts


def ask(api_key):
    """Returns the text of a realtime answer."""
    with OpenAI(base_url=base_url, api_key=api_key).realtime.connect(
        model="sandbox/voice:free"
    ) as connection:
        connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Hello"}],
            }
        )
        connection.response.create()
        for event in connection:
            if event.type == "response.output_text.done":
                return event.text
            if event.type == "error":
                return event.error.message


found["realtime"] = ask(key)
found["secret"] = ask(secret)
print(json.dumps(found))
