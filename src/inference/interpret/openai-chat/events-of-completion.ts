interface WholeChoice {
  message?: { tool_calls?: unknown };
  finish_reason?: unknown;
}

/**
 * Events that say what a JSON body says; what cannot be read becomes an event that cannot be read
 * either.
 */
export function eventsOfCompletion(text: string): string {
  let body: unknown;
  try {
    const parsed: unknown = JSON.parse(text);
    body = Array.isArray(parsed) ? parsed[0] : parsed;
  } catch {
    return `data: ${text.replace(/[\r\n]+/g, " ").trimStart()}\n\n`;
  }
  const { choices, usage, ...envelope } = Object(body) as {
    choices?: unknown;
    usage?: unknown;
  } & Record<string, unknown>;
  if (!Array.isArray(choices)) return event(body);
  const chunk = { ...envelope, object: "chat.completion.chunk" };
  const whole = choices.map((choice) => Object(choice) as WholeChoice);
  const deltas = whole.map(({ message, ...choice }, index) => ({
    index,
    ...choice,
    delta: deltaOf(message),
    finish_reason: null,
  }));
  const finishes = whole.map(({ message: _, finish_reason: reason, ...choice }, index) => ({
    index,
    ...choice,
    delta: {},
    finish_reason: reason,
  }));
  const usageEvent = usage === undefined ? "" : event({ ...chunk, choices: [], usage });
  return `${event({ ...chunk, choices: deltas })}${event({ ...chunk, choices: finishes })}${usageEvent}data: [DONE]\n\n`;
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/**
 * A message as the one delta that says it all; tool calls get the index that streams number them
 * by.
 */
function deltaOf(message: WholeChoice["message"]): unknown {
  const calls = message?.tool_calls;
  if (!Array.isArray(calls)) return message ?? {};
  return { ...message, tool_calls: calls.map((call, index) => ({ index, ...Object(call) })) };
}
