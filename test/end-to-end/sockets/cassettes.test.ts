import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../support/cassettes.ts";
import { body, end, head } from "../../support/upstream/steps.ts";
import { clientStage, modelIn, upstreamDialects } from "../clients/support/client-stage.ts";
import { SocketClient, type Event } from "./support/socket-client.ts";

const stage = clientStage();

/** Returns an event without what differs from request to request. */
const comparable = (event: unknown): unknown =>
  JSON.parse(JSON.stringify(event).replace(/[0-9a-f]{24,32}/g, "ID"), (name, value: unknown) =>
    /_at$|Ms$|^timings$|^obfuscation$/.test(name) ? 0 : value,
  );

/** Returns the events of a stream over HTTP. */
const eventsOf = (text: string): Event[] =>
  text
    .split("\n")
    .filter((line) => line.startsWith("data: ") && line !== "data: [DONE]")
    .map((line) => JSON.parse(line.slice(6)) as Event);

describe.each(upstreamDialects)("what %s has recorded", (dialect) => {
  const whole = readCassettes(dialect).filter(({ parts }) => parts.at(-1)?.type === "response-end");

  test.each(whole.map(({ name, bytes }) => [name, bytes] as const))(
    "%s has the same events by SSE and by socket",
    async (_, bytes) => {
      const asked = { model: modelIn(dialect), input: "Talk.", store: false };
      const script = [head(), body(bytes), end()];
      stage.upstream.enqueue(script, script);
      const streamed = await stage.gateway.post("/responses", { ...asked, stream: true });
      const overHttp = eventsOf(await streamed.text());
      const client = await SocketClient.open(stage.gateway.origin);
      client.send({ type: "response.create", ...asked });
      while (client.events.length < overHttp.length) await client.next();
      expect(client.events.map(comparable)).toEqual(overHttp.map(comparable));
      client.close();
    },
  );
});
