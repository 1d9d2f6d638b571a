"""Asks every endpoint of Azure's client of Python that goes by deployment, and some that do not."""
import base64
import io
import json
import sys

import openai

origin, key = sys.argv[1], sys.argv[2]
told = {}


def azure(deployment=None):
    return openai.AzureOpenAI(
        azure_endpoint=origin,
        api_key=key,
        api_version="2024-10-21",
        azure_deployment=deployment,
        max_retries=0,
    )


hello = [{"role": "user", "content": "Hello"}]
chat = azure("sandbox/chat:free")
whole = chat.chat.completions.create(model="gpt-4o", messages=hello)
told["model"] = whole.model
streamed = "".join(
    chunk.choices[0].delta.content or ""
    for chunk in azure().chat.completions.create(model="sandbox/chat:free", messages=hello, stream=True)
    if chunk.choices
)
told["streamed"] = streamed == whole.choices[0].message.content
told["vectors"] = len(azure().embeddings.create(model="sandbox/embed:free", input=["a", "b"]).data)
told["completed"] = chat.completions.create(model="-", prompt="Hello").object
made = azure().images.generate(model="sandbox/image:free", prompt="a cat", size="512x512")
picture = base64.b64decode(made.data[0].b64_json)
told["made"] = picture[1:4].decode()
edited = azure().images.edit(
    model="sandbox/image:free", image=("one.png", io.BytesIO(picture)), prompt="a dog", size="512x512"
)
told["edited"] = base64.b64decode(edited.data[0].b64_json)[1:4].decode()
sound = azure("sandbox/speech:free").audio.speech.create(
    model="tts", input="Hello", voice="alloy", response_format="wav"
)
told["spoken"] = sound.content[:4].decode()
heard = azure("sandbox/transcribe:free").audio.transcriptions.create(
    model="whisper", file=("a.wav", io.BytesIO(sound.content), "audio/wav")
)
told["transcribed"] = str(len(sound.content)) in heard.text
told["answered"] = azure().responses.create(model="sandbox/chat:free", input="Hello").status
told["listed"] = "sandbox/chat:free" in [model.id for model in azure().models.list()]
try:
    azure("no/such").chat.completions.create(model="-", messages=hello)
except openai.NotFoundError as error:
    told["refused"] = error.code
print(json.dumps(told))
