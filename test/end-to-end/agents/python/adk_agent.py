"""Runs one task for each model with Google's Agent Development Kit, and prints what the agent said."""

import asyncio
import json
import os
import sys

from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types


def get_weather(city: str) -> dict:
    """Returns the weather of a city."""
    return {"weather": f"weather of {city}"}


async def ask(model, streams):
    agent = Agent(
        name="traveller",
        model=Gemini(model=model, base_url=os.environ["GATEWAY_ORIGIN"]),
        instruction="Answer briefly.",
        tools=[get_weather],
    )
    runner = InMemoryRunner(agent=agent, app_name="travel")
    session = await runner.session_service.create_session(app_name="travel", user_id="one")
    mode = StreamingMode.SSE if streams else StreamingMode.NONE
    said = []
    for question in ("Weather in Oslo?", "And tomorrow?"):
        events = runner.run_async(
            user_id="one",
            session_id=session.id,
            new_message=types.Content(role="user", parts=[types.Part(text=question)]),
            run_config=RunConfig(streaming_mode=mode),
        )
        async for event in events:
            if event.error_message:
                raise RuntimeError(event.error_message)
            if event.content and not event.partial:
                parts = event.content.parts
                said += [part.text for part in parts if part.text and not part.thought]
    return said


async def main():
    for model in sys.argv[1:]:
        for streams in (False, True):
            said = await ask(model, streams)
            print(json.dumps({"model": model, "streams": streams, "said": said}), flush=True)


asyncio.run(main())
