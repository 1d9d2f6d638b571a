"""Makes and changes pictures, transcribes, translates and speaks through OpenAI's unmodified client."""
import base64
import io
import json
import sys

import openai

origin, key = sys.argv[1], sys.argv[2]
client = openai.OpenAI(api_key=key, base_url=origin + "/api/v1", max_retries=0)
told = {}

made = client.images.generate(model="sandbox/image:free", prompt="a cat", size="512x512")
picture = base64.b64decode(made.data[0].b64_json)
told["made"] = picture[1:4].decode()
told["streamed"] = [
    event.type
    for event in client.images.generate(
        model="sandbox/image:free", prompt="a cat", size="512x512", stream=True, partial_images=1
    )
][-1]
first, second = (("one.png", io.BytesIO(picture)), ("two.png", io.BytesIO(picture)))
edited = client.images.edit(model="sandbox/image:free", image=[first, second], prompt="a dog", size="512x512")
told["edited"] = base64.b64decode(edited.data[0].b64_json)[1:4].decode()
told["edit_streamed"] = [
    event.type
    for event in client.images.edit(
        model="sandbox/image:free", image=("one.png", io.BytesIO(picture)), prompt="a dog", stream=True
    )
][-1]
varied = client.images.create_variation(model="sandbox/image:free", image=("one.png", io.BytesIO(picture)))
told["varied"] = len(varied.data)

with client.audio.speech.with_streaming_response.create(
    model="sandbox/speech:free", input="Hello", voice="alloy", response_format="wav"
) as speech:
    sound = b"".join(speech.iter_bytes())
told["spoken"] = sound[:4].decode()


def named():
    return ("a.wav", io.BytesIO(sound), "audio/wav")


whole = client.audio.transcriptions.create(model="sandbox/transcribe:free", file=named())
told["transcribed"] = str(len(sound)) in whole.text
srt = client.audio.transcriptions.create(model="sandbox/transcribe:free", file=named(), response_format="srt")
told["srt"] = srt.startswith("1\n")
told["transcript"] = [
    event.type for event in client.audio.transcriptions.create(model="sandbox/transcribe:free", file=named(), stream=True)
][-1]
told["translated"] = client.audio.translations.create(model="sandbox/transcribe:free", file=named()).text != ""
translation = client.audio.translations.create(
    model="sandbox/transcribe:free", file=named(), response_format="verbose_json"
)
told["translation_timed"] = translation.duration > 0
print(json.dumps(told))
