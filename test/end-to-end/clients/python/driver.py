"""Asks questions through Python's openai and anthropic packages."""

import json

import anthropic
import openai

from questions import PLAN, WEATHER, keep, natives, serve

# Making a client takes longer than all that is asked of it.
clients = {}


def client_of(kind, base_url, settings):
    key = (kind, base_url, settings["apiKey"], settings["retries"])
    if key not in clients:
        parts = {"api_key": settings["apiKey"], "max_retries": settings["retries"]}
        clients[key] = kind(base_url=base_url, **parts)
    return clients[key]


def parts_of(file):
    url = "data:" + file["mediaType"] + ";base64," + file["data"]
    return file["name"], url, file["mediaType"] == "image/png"


def cost_of(usage):
    return getattr(usage, "cost", None)


def chat_messages(turns):
    for turn in turns:
        if turn["role"] == "assistant":
            yield natives[turn["said"]["native"]]
        elif turn["role"] == "tools":
            for result in turn["results"]:
                yield {"role": "tool", "tool_call_id": result["id"], "content": result["text"]}
        elif "file" in turn:
            name, url, is_picture = parts_of(turn["file"])
            picture = {"type": "image_url", "image_url": {"url": url}}
            document = {"type": "file", "file": {"filename": name, "file_data": url}}
            part = picture if is_picture else document
            yield {"role": "user", "content": [{"type": "text", "text": turn["text"]}, part]}
        else:
            yield {"role": "user", "content": turn["text"]}


def ask_chat(settings, question):
    client = client_of(openai.OpenAI, settings["origin"] + "/v1", settings)
    request = {"model": question["model"], "messages": list(chat_messages(question["turns"]))}
    if "maxTokens" in question:
        request["max_completion_tokens"] = question["maxTokens"]
    if question.get("reasoning"):
        request["reasoning_effort"] = "high"
    if question.get("tools"):
        request["tools"] = [{"type": "function", "function": WEATHER}]
    if question.get("structured"):
        schema = {"name": "plan", "strict": True, "schema": PLAN}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    if not question["stream"]:
        completion = client.chat.completions.create(**request)
    else:
        completion = stream_chat(client, request, question)
        if completion is None:
            return None
    choice = completion.choices[0]
    calls = [
        {"id": call.id, "name": call.function.name, "arguments": json.loads(call.function.arguments)}
        for call in choice.message.tool_calls or []
    ]
    return {
        "text": choice.message.content or "",
        "reasoning": getattr(choice.message, "reasoning_content", None),
        "calls": calls,
        "finish": {"tool_calls": "calls"}.get(choice.finish_reason, choice.finish_reason),
        "usage": {
            "input": completion.usage.prompt_tokens,
            "output": completion.usage.completion_tokens,
            "cost": cost_of(completion.usage),
        },
        "native": keep(choice.message.to_dict()),
    }


def stream_chat(client, request, question):
    try:
        with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
            for event in stream:
                if question.get("leaveAtText") and event.type == "content.delta":
                    return None
            return stream.get_final_completion()
    except openai.LengthFinishReasonError as error:
        return error.completion


def input_items(turns):
    for turn in turns:
        if turn["role"] == "assistant":
            yield from natives[turn["said"]["native"]]
        elif turn["role"] == "tools":
            for result in turn["results"]:
                output = {"call_id": result["id"], "output": result["text"]}
                yield {"type": "function_call_output", **output}
        elif "file" in turn:
            name, url, is_picture = parts_of(turn["file"])
            picture = {"type": "input_image", "image_url": url, "detail": "auto"}
            document = {"type": "input_file", "filename": name, "file_data": url}
            part = picture if is_picture else document
            yield {"role": "user", "content": [{"type": "input_text", "text": turn["text"]}, part]}
        else:
            yield {"role": "user", "content": turn["text"]}


def ask_responses(settings, question):
    client = client_of(openai.OpenAI, settings["origin"] + "/v1", settings)
    request = {"model": question["model"], "input": list(input_items(question["turns"]))}
    if "maxTokens" in question:
        request["max_output_tokens"] = question["maxTokens"]
    if question.get("reasoning"):
        request["reasoning"] = {"effort": "high", "summary": "auto"}
        request["include"] = ["reasoning.encrypted_content"]
    if question.get("tools"):
        request["tools"] = [{"type": "function", "strict": True, **WEATHER}]
    if question.get("structured"):
        schema = {"type": "json_schema", "name": "plan", "strict": True, "schema": PLAN}
        request["text"] = {"format": schema}
    if not question["stream"]:
        response = client.responses.create(**request)
    else:
        with client.responses.stream(**request) as stream:
            for event in stream:
                if question.get("leaveAtText") and event.type == "response.output_text.delta":
                    return None
                if event.type in ("response.completed", "response.incomplete"):
                    response = event.response
                if event.type == "response.failed":
                    raise RuntimeError(event.response.error.message)
    calls = [
        {"id": item.call_id, "name": item.name, "arguments": json.loads(item.arguments)}
        for item in response.output
        if item.type == "function_call"
    ]
    reason = response.incomplete_details and response.incomplete_details.reason
    finish = "length" if reason == "max_output_tokens" else "stop"
    return {
        "text": response.output_text,
        "reasoning": "".join(
            part.text
            for item in response.output
            if item.type == "reasoning"
            for part in item.summary
        ),
        "calls": calls,
        "finish": "calls" if calls else finish,
        "usage": {
            "input": response.usage.input_tokens,
            "output": response.usage.output_tokens,
            "cost": cost_of(response.usage),
        },
        "native": keep([item.to_dict() for item in response.output]),
    }


def anthropic_messages(turns):
    for turn in turns:
        if turn["role"] == "assistant":
            yield {"role": "assistant", "content": natives[turn["said"]["native"]]}
        elif turn["role"] == "tools":
            results = [
                {"type": "tool_result", "tool_use_id": result["id"], "content": result["text"]}
                for result in turn["results"]
            ]
            yield {"role": "user", "content": results}
        elif "file" in turn:
            file = turn["file"]
            source = {"type": "base64", "media_type": file["mediaType"], "data": file["data"]}
            is_picture = file["mediaType"] == "image/png"
            named = {} if is_picture else {"title": file["name"]}
            part = {"type": "image" if is_picture else "document", "source": source, **named}
            yield {"role": "user", "content": [{"type": "text", "text": turn["text"]}, part]}
        else:
            yield {"role": "user", "content": turn["text"]}


def ask_messages(settings, question):
    client = client_of(anthropic.Anthropic, settings["origin"], settings)
    request = {
        "model": question["model"],
        "max_tokens": question.get("maxTokens", 4096),
        "messages": list(anthropic_messages(question["turns"])),
    }
    if question.get("reasoning"):
        request["thinking"] = {"type": "enabled", "budget_tokens": 2048}
    if question.get("tools"):
        parameters = WEATHER["parameters"]
        named = {"name": WEATHER["name"], "description": WEATHER["description"]}
        request["tools"] = [{**named, "input_schema": parameters}]
    if question.get("structured"):
        request["output_config"] = {"format": {"type": "json_schema", "schema": PLAN}}
    if not question["stream"]:
        message = client.messages.create(**request)
    else:
        with client.messages.stream(**request) as stream:
            for event in stream:
                if question.get("leaveAtText") and event.type == "text":
                    return None
            message = stream.get_final_message()
    calls = [
        {"id": block.id, "name": block.name, "arguments": block.input}
        for block in message.content
        if block.type == "tool_use"
    ]
    finishes = {"end_turn": "stop", "max_tokens": "length", "tool_use": "calls"}
    return {
        "reasoning": "".join(block.thinking for block in message.content if block.type == "thinking"),
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "calls": calls,
        "finish": finishes.get(message.stop_reason, "stop"),
        "usage": {
            "input": message.usage.input_tokens,
            "output": message.usage.output_tokens,
            "cost": cost_of(message.usage),
        },
        "native": keep([block.to_dict() for block in message.content]),
    }


SURFACES = {"chat": ask_chat, "responses": ask_responses, "messages": ask_messages}

serve(SURFACES)
