import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { answer, body as bytes, stream } from "../../support/upstream/steps.ts";
import { addressOf, type AnyClientName } from "./support/client-dialect.ts";
import { model, providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { clientOf } from "./support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

/**
 * Texts of a client and an upstream of one dialect, with odd spellings, and at three depths with
 * members that the dialect does not define.
 */
interface Texts {
  dialect: AnyClientName;
  /** Members of the request that must arrive as they were written. */
  request: readonly string[];
  /** The answer, and below it the parts of it that must arrive as they were written. */
  answer: string;
  kept: readonly string[];
  events: readonly string[];
  keptEvents: readonly string[];
}

const texts: readonly Texts[] = [
  {
    dialect: "openai-chat",
    request: [
      '"messages": [ {"role":"user","content":[{"type":"text","text":"\\u0041 \\/ A","x_part":{"deep":[1e2]}}],"x_message":-0.0} ]',
      '"max_tokens":3e1',
      '"x_foo":{"b":1,"a":[{"c":1.50}]}',
    ],
    answer:
      '{"id":"c1","object":"chat.completion","created":1,"model":"large-v2","x_top":1e2,"choices":[{"index":0,' +
      '"message":{"role":"assistant","content":"\\u0041","x_message":{"deep":[1.50]}},"finish_reason":"stop","x_choice":[ ]}],' +
      '"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"x_usage":1}}',
    kept: [
      '"x_top":1e2',
      '"message":{"role":"assistant","content":"\\u0041","x_message":{"deep":[1.50]}}',
      '"x_choice":[ ]',
      '"x_usage":1',
    ],
    events: [
      '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"large-v2","choices":[{"index":0,' +
        '"delta":{"role":"assistant","content":"\\u0041","x_delta":{"deep":[1.50]}},"finish_reason":null,"x_choice":1e2}],"x_top":[ ]}',
      '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"large-v2",' +
        '"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
      '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"large-v2","choices":[],' +
        '"usage":{"prompt_tokens":11,"completion_tokens":7}}',
      "[DONE]",
    ],
    keptEvents: [
      '"delta":{"role":"assistant","content":"\\u0041","x_delta":{"deep":[1.50]}},"finish_reason":null,"x_choice":1e2',
      '"x_top":[ ]',
    ],
  },
  {
    dialect: "anthropic-messages",
    request: [
      '"messages": [ {"role":"user","content":[{"type":"text","text":"\\u0041 \\/ A","x_part":{"deep":[1e2]}}],"x_message":-0.0} ]',
      '"max_tokens":3e1',
      '"x_foo":{"b":1,"a":[{"c":1.50}]}',
      '"context_management":{"edits":[ ]}',
    ],
    answer:
      '{"id":"msg_1","type":"message","role":"assistant","model":"large-v2","x_top":1e2,"content":[{"type":"text","text":"\\u0041",' +
      '"x_block":{"deep":[1.50]}},{"type":"vendor_block","x":[ ]}],"stop_reason":"end_turn","stop_sequence":null,' +
      '"usage":{"input_tokens":11,"output_tokens":7,"x_usage":1}}',
    kept: [
      '"x_top":1e2',
      '{"type":"text","text":"\\u0041","x_block":{"deep":[1.50]}},{"type":"vendor_block","x":[ ]}',
      '"x_usage":1',
    ],
    events: [
      '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"large-v2","content":[],' +
        '"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":11,"output_tokens":1},"x_message":1e2},"x_top":[ ]}',
      '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","x_block":1.50}}',
      '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\u0041","x_delta":{"deep":[1e2]}}}',
      '{"type":"content_block_stop","index":0}',
      '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"x_stop":[ ]},' +
        '"usage":{"output_tokens":7,"x_usage":1}}',
      '{"type":"message_stop"}',
    ],
    keptEvents: [
      '"x_message":1e2',
      '"x_top":[ ]',
      '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","x_block":1.50}}',
      '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\u0041","x_delta":{"deep":[1e2]}}}',
      '"x_stop":[ ]',
      '"x_usage":1',
    ],
  },
  {
    dialect: "openai-responses",
    request: [
      '"input": [ {"role":"user","content":[{"type":"input_text","text":"\\u0041 \\/ A","x_part":{"deep":[1e2]}}],"x_item":-0.0} ]',
      '"max_output_tokens":3e1',
      '"x_foo":{"b":1,"a":[{"c":1.50}]}',
      '"tools":[{"type":"web_search","x_tool":[ ]}]',
    ],
    answer:
      '{"id":"resp_1","object":"response","created_at":1,"model":"large-v2","status":"completed","x_top":1e2,' +
      '"output":[{"id":"msg_1","type":"message","role":"assistant","status":"completed","x_item":[ ],"content":[{"type":"output_text",' +
      '"text":"\\u0041","annotations":[],"x_part":{"deep":[1.50]}}]}],' +
      '"usage":{"input_tokens":11,"output_tokens":7,"total_tokens":18,"x_usage":1}}',
    kept: [
      '"x_top":1e2',
      '"x_item":[ ]',
      '{"type":"output_text","text":"\\u0041","annotations":[],"x_part":{"deep":[1.50]}}',
      '"x_usage":1',
    ],
    events: [
      '{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"large-v2","status":"in_progress","output":[]}}',
      '{"type":"response.output_item.added","sequence_number":1,"output_index":0,' +
        '"item":{"id":"ws_1","type":"web_search_call","x_item":1e2}}',
      '{"type":"response.web_search_call.searching","sequence_number":2,"output_index":0,"item_id":"ws_1","x_event":{"deep":[1.50]}}',
      '{"type":"response.output_item.done","sequence_number":3,"output_index":0,' +
        '"item":{"id":"ws_1","type":"web_search_call","x_item":1e2}}',
      '{"type":"response.output_text.delta","sequence_number":4,"output_index":1,' +
        '"item_id":"msg_1","content_index":0,"delta":"\\u0041","x":[ ]}',
      '{"type":"response.completed","sequence_number":5,"response":{"id":"resp_1","model":"large-v2","status":"completed","x_top":1e2,' +
        '"output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"A"}]}],' +
        '"usage":{"input_tokens":11,"output_tokens":7}}}',
    ],
    keptEvents: [
      '"item":{"id":"ws_1","type":"web_search_call","x_item":1e2}',
      '"item_id":"ws_1","x_event":{"deep":[1.50]}',
      '"content_index":0,"delta":"\\u0041","x":[ ]',
      '"x_top":1e2',
    ],
  },
  {
    dialect: "google-generate",
    request: [
      '"contents": [ {"role":"user","parts":[{"text":"\\u0041 \\/ A","x_part":{"deep":[1e2]}}],"x_content":-0.0} ]',
      '"generationConfig":{"maxOutputTokens":3e1,"x_config":[ ]}',
      '"x_foo":{"b":1,"a":[{"c":1.50}]}',
      '"safetySettings":[ ]',
    ],
    answer:
      '{"responseId":"r1","modelVersion":"large-v2","x_top":1e2,"candidates":[{"index":0,"content":{"role":"model",' +
      '"parts":[{"text":"\\u0041","x_part":{"deep":[1.50]}}]},"finishReason":"STOP","x_candidate":[ ]}],' +
      '"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":7,"totalTokenCount":18,"x_usage":1}}',
    kept: [
      '"x_top":1e2',
      '"parts":[{"text":"\\u0041","x_part":{"deep":[1.50]}}]',
      '"x_candidate":[ ]',
      '"x_usage":1',
    ],
    events: [
      '{"responseId":"r1","modelVersion":"large-v2","x_top":[ ],"candidates":[{"index":0,"content":{"role":"model",' +
        '"parts":[{"text":"\\u0041","x_part":{"deep":[1.50]}}]},"x_candidate":1e2}]}',
      '{"responseId":"r1","modelVersion":"large-v2","candidates":[{"index":0,"content":{"role":"model",' +
        '"parts":[{"text":""}]},"finishReason":"STOP","x_end":[ ]}],' +
        '"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":7,"totalTokenCount":18,"x_usage":1}}',
    ],
    keptEvents: [
      '"x_top":[ ]',
      '"parts":[{"text":"\\u0041","x_part":{"deep":[1.50]}}]},"x_candidate":1e2',
      '"x_end":[ ]',
      '"x_usage":1',
    ],
  },
];

const send = (
  dialect: AnyClientName,
  { members, streamed }: { members: readonly string[]; streamed: boolean },
): Promise<Response> => {
  const only = [providerId(dialect)];
  const { path, body } = addressOf(clientOf(dialect), {
    model,
    stream: streamed,
    provider: { only },
  });
  return scene.gateway.post(path, `${JSON.stringify(body).slice(0, -1)},${members.join(",")}}`);
};

describe.each(texts.map((row) => [row.dialect, row] as const))(
  "when client and provider both use %s, bytes are preserved",
  (dialect, row) => {
    test("of the request, except for the model and the gateway's own fields", async () => {
      const upstream = scene.upstreams[dialect];
      upstream.script(answer(row.answer, { headers: { "content-type": "application/json" } }));
      await (await send(dialect, { members: row.request, streamed: false })).text();
      const { body: got = "", path = "" } = upstream.requests.at(-1) ?? {};
      expect(row.request.filter((member) => !got.includes(member))).toEqual([]);
      const named = got.includes('"model":"large-v2"') || path.includes("/large-v2:");
      expect([named, got.includes("provider")]).toEqual([true, false]);
    });

    test("of a whole response, except for the id, model and charge", async () => {
      scene.upstreams[dialect].script(
        answer(row.answer, { headers: { "content-type": "application/json" } }),
      );
      const response = await send(dialect, { members: row.request, streamed: false });
      const text = await response.text();
      expect([response.status, row.kept.filter((part) => !text.includes(part))]).toEqual([200, []]);
      expect([
        text.includes("large-v2"),
        text.includes(`":"${model}"`),
        text.includes('"cost":'),
      ]).toEqual([false, true, true]);
    });

    test("of every event", async () => {
      scene.upstreams[dialect].script(
        stream(
          row.events.map((data) => {
            const name = /^\{"type":"([^"]+)"/.exec(data)?.[1];
            return bytes(`${name === undefined ? "" : `event: ${name}\n`}data: ${data}\n\n`);
          }),
        ),
      );
      const response = await send(dialect, { members: row.request, streamed: true });
      const text = await response.text();
      expect([response.status, row.keptEvents.filter((part) => !text.includes(part))]).toEqual([
        200,
        [],
      ]);
      expect([text.includes("large-v2"), text.includes('"cost":')]).toEqual([false, true]);
    });
  },
);
