# chat.ts in Python: pip install openai
import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("SWITCHYARD_URL", "http://127.0.0.1:8787") + "/v1",
    api_key=os.environ["SWITCHYARD_KEY"],
)

completion = client.chat.completions.create(
    model=os.environ.get("MODEL", "sandbox/chat:free"),
    messages=[{"role": "user", "content": "Hello"}],
)

print(completion.choices[0].message.content)
print(completion.usage)
