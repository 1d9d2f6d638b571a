"""Makes and changes a picture, speaks and transcribes through LiteLLM's unmodified client."""
import base64
import io
import json
import sys

import litellm

origin, key = sys.argv[1], sys.argv[2]
shared = {"api_base": origin + "/api/v1", "api_key": key, "max_retries": 0}
told = {}

made = litellm.image_generation(prompt="a cat", model="openai/sandbox/image:free", size="512x512", **shared)
picture = base64.b64decode(made.data[0].b64_json)
told["made"] = picture[1:4].decode()
edited = litellm.image_edit(
    image=[io.BytesIO(picture)], prompt="a dog", model="openai/sandbox/image:free", **shared
)
told["edited"] = base64.b64decode(edited.data[0].b64_json)[1:4].decode()

spoken = litellm.speech(
    model="openai/sandbox/speech:free", input="Hello", voice="alloy", response_format="wav", **shared
)
sound = spoken.content
told["spoken"] = sound[:4].decode()


def named():
    file = io.BytesIO(sound)
    file.name = "a.wav"
    return file


heard = litellm.transcription(model="openai/sandbox/transcribe:free", file=named(), **shared)
told["transcribed"] = str(len(sound)) in heard.text
verbose = litellm.transcription(
    model="openai/sandbox/transcribe:free", file=named(), response_format="verbose_json", **shared
)
told["timed"] = verbose.duration > 0
print(json.dumps(told))
