"""Asks models through Google's unmodified client as it is set to Vertex AI."""
import json
import sys

from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials

origin, key = sys.argv[1], sys.argv[2]
model, embedder = "sandbox/chat:free", "sandbox/embed:free"
options = types.HttpOptions(base_url=origin)
look = {"name": "look", "parameters": {"type": "OBJECT", "properties": {"q": {"type": "STRING"}}}}
told = {}
for name, client in {
    "project": genai.Client(
        vertexai=True, project="p", location="global", credentials=Credentials(key), http_options=options
    ),
    "express": genai.Client(vertexai=True, api_key=key, http_options=options),
}.items():
    models = client.models
    whole = models.generate_content(model=model, contents="Hello")
    chunks = list(models.generate_content_stream(model=model, contents="Hello"))
    config = {"tools": [{"function_declarations": [look]}], "automatic_function_calling": {"disable": True}}
    chat = client.chats.create(model=model, config=config)
    called = chat.send_message("find sandbox:calls=1").function_calls
    answered = chat.send_message(
        [types.Part.from_function_response(name=call.name, response={"output": "found"}) for call in called]
    )
    shaped = models.generate_content(
        model=model,
        contents="Hello",
        config={"response_mime_type": "application/json", "response_schema": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}},
    )
    vectors = models.embed_content(model=embedder, contents=["one", "two"], config={"output_dimensionality": 8}).embeddings
    refusals = []
    for ask in (
        lambda: models.generate_content(model="no/such", contents="Hello"),
        lambda: list(models.generate_content_stream(model=model, contents="sandbox:status=429")),
    ):
        try:
            ask()
        except errors.APIError as error:
            refusals.append([error.code, error.status])
    told[name] = {
        "finish": whole.candidates[0].finish_reason,
        "streamed": "".join(chunk.text or "" for chunk in chunks) == whole.text,
        "calls": [call.name for call in called],
        "answered": answered.text != "",
        "shaped": list(json.loads(shaped.text)),
        "vectors": [len(each.values) for each in vectors],
        "counted": models.count_tokens(model=model, contents="Hello").total_tokens > 0,
        "listed": f"publishers/sandbox/models/chat:free" in [each.name for each in models.list(config={"page_size": 3})],
        "shown": models.get(model=model).name,
        "refusals": refusals,
    }
print(json.dumps(told))
