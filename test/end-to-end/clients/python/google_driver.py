"""Asks questions through Python's google-genai package, and through LangChain's over it."""

import base64

from google import genai
from google.genai import types
from questions import PLAN, WEATHER, keep, natives, serve

# Making a client takes longer than all that is asked of it.
clients = {}


def client_of(settings):
    key = (settings["origin"], settings["apiKey"], settings["retries"])
    if key not in clients:
        retries = settings["retries"]
        attempts = {"attempts": retries + 1, "initial_delay": 0.01} if retries else None
        options = types.HttpOptions(base_url=settings["origin"], retry_options=attempts)
        clients[key] = genai.Client(api_key=settings["apiKey"], http_options=options)
    return clients[key]


def contents_of(turns):
    for turn in turns:
        if turn["role"] == "assistant":
            yield from natives[turn["said"]["native"]]
        elif turn["role"] == "tools":
            parts = [
                types.Part(
                    function_response=types.FunctionResponse(
                        id=result["id"], name=result["name"], response={"output": result["text"]}
                    )
                )
                for result in turn["results"]
            ]
            yield types.Content(role="user", parts=parts)
        else:
            parts = [types.Part(text=turn["text"])]
            if "file" in turn:
                data = base64.b64decode(turn["file"]["data"])
                parts.append(types.Part.from_bytes(data=data, mime_type=turn["file"]["mediaType"]))
            yield types.Content(role="user", parts=parts)


def config_of(question):
    config = {"automatic_function_calling": {"disable": True}}
    if "maxTokens" in question:
        config["max_output_tokens"] = question["maxTokens"]
    if question.get("reasoning"):
        config["thinking_config"] = {"include_thoughts": True}
    if question.get("tools"):
        declared = {
            "name": WEATHER["name"],
            "description": WEATHER["description"],
            "parameters_json_schema": WEATHER["parameters"],
        }
        config["tools"] = [{"function_declarations": [declared]}]
    if question.get("structured"):
        config["response_mime_type"] = "application/json"
        config["response_json_schema"] = PLAN
    return types.GenerateContentConfig(**config)


def reply_of(answers):
    contents = [answer.candidates[0].content for answer in answers if answer.candidates]
    parts = [part for content in contents if content for part in content.parts or []]
    calls = [
        {"id": part.function_call.id, "name": part.function_call.name, "arguments": part.function_call.args}
        for part in parts
        if part.function_call
    ]
    usage = answers[-1].usage_metadata
    ended_at_limit = answers[-1].candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    return {
        "text": "".join(part.text for part in parts if part.text and not part.thought),
        "reasoning": "".join(part.text for part in parts if part.text and part.thought),
        "calls": calls,
        "finish": "calls" if calls else "length" if ended_at_limit else "stop",
        "usage": {
            "input": usage.prompt_token_count,
            "output": (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
            "cost": getattr(usage, "cost", None),
        },
        # A content for each chunk, as the package's own chats keep them.
        "native": keep([content for content in contents if content]),
    }


def ask_generate(settings, question):
    models = client_of(settings).models
    asked = {
        "model": question["model"],
        "contents": list(contents_of(question["turns"])),
        "config": config_of(question),
    }
    if not question["stream"]:
        return reply_of([models.generate_content(**asked)])
    answers = []
    for answer in models.generate_content_stream(**asked):
        answers.append(answer)
        if question.get("leaveAtText") and answer.text:
            return None
    return reply_of(answers)


def messages_of(turns):
    from langchain_core.messages import HumanMessage, ToolMessage

    for turn in turns:
        if turn["role"] == "assistant":
            yield natives[turn["said"]["native"]]
        elif turn["role"] == "tools":
            for result in turn["results"]:
                told = {"tool_call_id": result["id"], "name": result["name"]}
                yield ToolMessage(content=result["text"], **told)
        elif "file" in turn:
            file = turn["file"]
            kind = "image" if file["mediaType"] == "image/png" else "file"
            part = {"type": kind, "base64": file["data"], "mime_type": file["mediaType"]}
            yield HumanMessage(content=[{"type": "text", "text": turn["text"]}, part])
        else:
            yield HumanMessage(content=turn["text"])


def message_reply(message, parsed=None):
    calls = [
        {"id": call["id"], "name": call["name"], "arguments": call["args"]}
        for call in message.tool_calls
    ]
    thoughts = [block.get("reasoning", "") for block in message.content_blocks if block["type"] == "reasoning"]
    ended_at_limit = message.response_metadata.get("finish_reason") == "MAX_TOKENS"
    return {
        "text": message.text,
        "reasoning": "".join(thoughts),
        "calls": calls,
        "finish": "calls" if calls else "length" if ended_at_limit else "stop",
        "usage": {
            "input": message.usage_metadata["input_tokens"],
            "output": message.usage_metadata["output_tokens"],
            "cost": None,
        },
        "native": keep(message),
        **({} if parsed is None else {"parsed": parsed}),
    }


def chat_model(settings, question):
    from langchain_google_genai import ChatGoogleGenerativeAI

    limits = {"max_output_tokens": question["maxTokens"]} if "maxTokens" in question else {}
    thinks = bool(question.get("reasoning"))
    key = (question["model"], thinks, str(settings), str(limits))
    if key not in clients:
        clients[key] = ChatGoogleGenerativeAI(
            model=question["model"],
            google_api_key=settings["apiKey"],
            base_url=settings["origin"],
            max_retries=settings["retries"] + 1,
            include_thoughts=thinks,
            **limits,
        )
    return clients[key]


def ask_langchain(settings, question):
    model = chat_model(settings, question)
    messages = list(messages_of(question["turns"]))
    if question.get("structured"):
        structured = model.with_structured_output(PLAN, method="json_schema", include_raw=True)
        answer = structured.invoke(messages)
        return message_reply(answer["raw"], answer["parsed"])
    asked = model.bind_tools([{"type": "function", "function": WEATHER}]) if question.get("tools") else model
    if not question["stream"]:
        return message_reply(asked.invoke(messages))
    total = None
    for chunk in asked.stream(messages):
        total = chunk if total is None else total + chunk
        if question.get("leaveAtText") and chunk.text:
            return None
    return message_reply(total)


serve({"generate": ask_generate, "langchain": ask_langchain})
