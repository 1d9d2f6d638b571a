"""Run by generated-clients.test.ts beside the package that openapi-python-client generates."""
import json
import sys

from switchyard_client import AuthenticatedClient
from switchyard_client.api.account import delete_keys_hash, get_credits, get_keys, post_keys
from switchyard_client.api.inference import post_chat_completions
from switchyard_client.models import ChatCompletion, ChatCompletionChunk, Error, PostChatCompletionsBody, PostKeysBody

base_url, key, management_key = sys.argv[1:4]
client = AuthenticatedClient(base_url=base_url, token=key)
account = AuthenticatedClient(base_url=base_url, token=management_key)
question = {"model": "sandbox/chat:free", "messages": [{"role": "user", "content": "Hello"}]}

chat = post_chat_completions.sync(client=client, body=PostChatCompletionsBody.from_dict(question))
assert isinstance(chat, ChatCompletion), chat

text = ""
streamed = post_chat_completions._get_kwargs(body=PostChatCompletionsBody.from_dict({**question, "stream": True}))
with client.get_httpx_client().stream(**streamed) as response:
    for line in response.iter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            chunk = ChatCompletionChunk.from_dict(json.loads(line[len("data: "):]))
            for choice in chunk.choices:
                text += choice.delta.content or ""

created = post_keys.sync(client=account, body=PostKeysBody(name="typed", limit=5))
listed = get_keys.sync(client=account)
removed = delete_keys_hash.sync(client=account, hash_=created.data.hash_)
credits_ = get_credits.sync(client=account)
refused = post_keys.sync(client=account, body=PostKeysBody(name=""))
assert isinstance(refused, Error), refused

print(json.dumps({
    "answer": chat.choices[0].message.content,
    "text": text,
    "limit": created.data.limit,
    "names": [each.name for each in listed.data],
    "deleted": removed.deleted,
    "balance": credits_.balance,
    "refused": refused.error.code,
}))
