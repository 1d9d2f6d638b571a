"""Asks models through Anthropic's unmodified clients for Amazon Bedrock and for Vertex AI."""
import json
import sys

import anthropic

origin, key = sys.argv[1], sys.argv[2]
asked = {
    "model": "sandbox/chat:free",
    "max_tokens": 200,
    "messages": [{"role": "user", "content": "Hello"}],
}
told = {}
for name, client in {
    "bedrock": anthropic.AnthropicBedrock(api_key=key, aws_region="us-east-1", base_url=origin, max_retries=0),
    "vertex": anthropic.AnthropicVertex(
        access_token=key, project_id="p", region="us-east5", base_url=origin + "/v1", max_retries=0
    ),
}.items():
    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        streamed = "".join(stream.text_stream)
        final = stream.get_final_message()
    beta = client.beta.messages.create(**asked, betas=["context-1m-2025-08-07"])
    refused = None
    try:
        client.messages.create(**{**asked, "model": "no/such"})
    except anthropic.NotFoundError as error:
        refused = error.status_code
    told[name] = {
        "stop": whole.stop_reason,
        "streamed": streamed == whole.content[0].text,
        "tokens": final.usage.output_tokens == whole.usage.output_tokens,
        "beta": beta.stop_reason,
        "refused": refused,
    }
told["vertex"]["counted"] = (
    anthropic.AnthropicVertex(access_token=key, project_id="p", region="us-east5", base_url=origin + "/v1")
    .messages.count_tokens(model=asked["model"], messages=asked["messages"])
    .input_tokens
    > 0
)
print(json.dumps(told))
