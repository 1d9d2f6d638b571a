import { describe, expect, test } from "bun:test";
import { testManagementKey } from "../../../support/gateway.ts";
import {
  wireOf,
  type ScriptedDialect,
} from "../../../support/scripted-upstream/scripted-upstream.ts";
import { scriptedUsage } from "../../../support/scripted-upstream/scripted-answer.ts";
import { cut, head, json, stall, type Step } from "../../../support/upstream/steps.ts";
import { amongPings } from "./among-pings.ts";
import { modelIn, modelWithBackup, scriptedCost, upstreamDialects } from "./client-stage.ts";
import type { ClientStage } from "./client-stage.ts";
import type {
  Call,
  ClientFailure,
  ClientOptions,
  ClientUnderTest,
  Question,
  Reply,
  SentFile,
  Turn,
} from "./client-under-test.ts";
import { pixelPng } from "./pixel-png.ts";

const user = (text: string): Turn => ({ role: "user", text });

const calls = [
  { id: "call_oslo", name: "get_weather", arguments: { city: "Oslo" } },
  { id: "call_bergen", name: "get_weather", arguments: { city: "Bergen" } },
];
const reasoning = { text: "One city only.", signature: "c2lnbmVkIGJ5IHRoZSBzY3JpcHQ=" };
const plan = { steps: ["pack", "go"], total: 2 };

const files: readonly SentFile[] = [
  { mediaType: "image/png", data: pixelPng, name: "pixel.png" },
  { mediaType: "application/pdf", data: btoa("%PDF-1.4 of one line"), name: "line.pdf" },
];

const modes = ["whole", "streamed"] as const;

/** What tests of one client over one stage need. */
interface Scene {
  client: ClientUnderTest;
  stage: ClientStage;
  ask(question: Partial<Question>, options?: Partial<ClientOptions>): Promise<Reply>;
  fail(question: Partial<Question>, options?: Partial<ClientOptions>): Promise<ClientFailure>;
}

function sceneOf(client: ClientUnderTest, stage: ClientStage): Scene {
  const ask: Scene["ask"] = (question, options) =>
    client.connect(stage.options(options))({
      model: modelIn("openai-chat"),
      turns: [user("Hello")],
      stream: false,
      ...question,
    });
  return {
    client,
    stage,
    ask,
    async fail(question, options) {
      const failed: unknown = await ask(question, options).then(
        (reply) => {
          throw new Error(`the client saw no failure but ${JSON.stringify(reply)}`);
        },
        (error: unknown) => error,
      );
      return client.failureOf(failed);
    },
  };
}

/** Everything that a client is to see, over every dialect that a provider may speak. */
export function describeClient(client: ClientUnderTest, stage: ClientStage): void {
  const scene = sceneOf(client, stage);
  describe.each(upstreamDialects)(`${client.name}, over %s`, (dialect) => {
    describe.each(modes)("%s", (mode) => {
      const way = { dialect, stream: mode === "streamed" };
      answerTests(scene, way);
      reasoningTests(scene, way);
      refusalTests(scene, way);
    });
    brokenStreamTests(scene, dialect);
  });
  describe(client.name, () => {
    ownErrorTests(scene);
    retryTests(scene);
  });
}

/** The dialect behind the gateway, and how the client asks. */
interface Way {
  dialect: ScriptedDialect;
  stream: boolean;
}

function answerTests({ client, stage, ask }: Scene, { dialect, stream }: Way): void {
  const asked = { model: modelIn(dialect), stream };

  test("text, the reason of its end, and usage with its cost", async () => {
    stage.upstream.say({ text: ["Grüße ", "aus ", "Ängelholm 👋"] });
    const reply = await ask(asked);
    expect(reply).toMatchObject({ text: "Grüße aus Ängelholm 👋", calls: [], finish: "stop" });
    const { cost, ...counts } = reply.usage;
    if (!(stream && client.cannot["counts in streams"])) expect(counts).toEqual(scriptedUsage);
    const hidden = client.cannot[stream ? "cost in streams" : "cost of whole answers"];
    expect(cost).toBe(hidden ? undefined : scriptedCost);
  });

  test("an answer that ends at its limit says so", async () => {
    stage.upstream.say({ text: ["Once upon"], finish: "length" });
    expect(await ask({ ...asked, maxTokens: 64 })).toMatchObject({
      text: "Once upon",
      finish: "length",
    });
  });

  test("parallel calls, their results and a further question", async () => {
    const { upstream } = stage;
    const before = upstream.requests.length;
    upstream.say(
      { text: ["Let me ", "look."], calls },
      { text: ["Sun and rain."] },
      { text: ["Yes."] },
    );
    const turns: Turn[] = [user("Weather in Oslo and Bergen?")];
    const first = await ask({ ...asked, turns, tools: true });
    expect(first).toMatchObject({ text: "Let me look.", finish: "calls" });
    expect(first.calls.map(withoutId)).toEqual(calls.map(withoutId));
    if (!(client.cannot["ids of calls"] && dialect === "google-generate"))
      expect(new Set(first.calls.map(({ id }) => id)).size).toBe(2);

    turns.push({ role: "assistant", said: first }, resultsOf(first.calls));
    const second = await ask({ ...asked, turns, tools: true });
    expect(second).toMatchObject({ text: "Sun and rain.", calls: [], finish: "stop" });
    turns.push({ role: "assistant", said: second }, user("Umbrella?"));
    expect((await ask({ ...asked, turns, tools: true })).text).toBe("Yes.");

    const bodies = upstream.requests.slice(before).map(({ body }) => body);
    expect(bodies).toHaveLength(3);
    expect(bodies[0]).toContain("Weather of a city.");
    expect(bodies[1]).toMatch(/weather of Oslo.*weather of Bergen/s);
    expect(bodies[2]).toMatch(/weather of Oslo.*weather of Bergen.*Sun and rain\..*Umbrella/s);
  });

  test("structured output is an object", async () => {
    stage.upstream.say({ text: [JSON.stringify(plan).slice(0, 9), JSON.stringify(plan).slice(9)] });
    expect((await ask({ ...asked, structured: true })).parsed).toEqual(plan);
    expect(stage.upstream.requests.at(-1)?.body).toContain('"steps"');
  });

  test.each(files)("$mediaType reaches the provider as it is", async (file) => {
    stage.upstream.say({ text: ["I see."] });
    const turns: Turn[] = [{ role: "user", text: "What is this?", file }];
    expect((await ask({ ...asked, turns })).text).toBe("I see.");
    const body = stage.upstream.requests.at(-1)?.body ?? "";
    for (const part of [file.mediaType, "What is this?"]) expect(body).toContain(part);
    // Google's package for Python writes base64 with the letters for addresses.
    const inAddresses = file.data.replaceAll("+", "-").replaceAll("/", "_");
    expect([file.data, inAddresses].some((data) => body.includes(data))).toBe(true);
  });
}

function reasoningTests({ client, stage, ask }: Scene, { dialect, stream }: Way): void {
  test("reasoning is told, and goes back with its signature", async () => {
    const { upstream } = stage;
    const before = upstream.requests.length;
    upstream.say({ reasoning, calls: calls.slice(0, 1) }, { text: ["Sun."] });
    const turns: Turn[] = [user("Weather in Oslo?")];
    const question = { model: modelIn(dialect), stream, reasoning: true, tools: true };
    const first = await ask({ ...question, turns });
    if (tellsReasoning(client, { dialect, stream })) expect(first.reasoning).toBe(reasoning.text);
    turns.push({ role: "assistant", said: first }, resultsOf(first.calls));
    expect((await ask({ ...question, turns })).text).toBe("Sun.");
    const last = upstream.requests.at(-1);
    expect(upstream.requests.length - before).toBe(2);
    // Chat upstreams sign nothing.
    if (dialect !== "openai-chat" && !client.cannot.signatures)
      expect(last?.body).toContain(reasoning.signature);
  });
}

const tellsReasoning = ({ cannot }: ClientUnderTest, { dialect, stream }: Way): boolean =>
  !cannot.reasoning &&
  !(stream && cannot["reasoning in streams"]) &&
  !(cannot.reasoning_content && dialect === "openai-chat");

const withoutId = ({ name, arguments: parameters }: Call): unknown => ({ name, parameters });

const resultsOf = (asked: readonly Call[]): Turn => ({
  role: "tools",
  results: asked.map(({ id, name, arguments: parameters }) => ({
    id,
    name,
    text: `weather of ${String(Reflect.get(Object(parameters), "city"))}`,
  })),
});

/** What a provider refuses, and the status that callers see. */
const refusals = [
  [400, 400],
  [429, 429],
  [500, 502],
] as const;

function refusalTests({ client, stage, fail }: Scene, { dialect, stream }: Way): void {
  test.each(refusals)(
    "a provider's %d is the client's error of the status %d",
    async (from, to) => {
      stage.upstream.enqueue(json(wireOf(dialect).errorBody(from), { status: from }));
      const failure = await fail({ model: modelIn(dialect), stream });
      expect(failure.message).toContain(`The fixture refused with ${from}.`);
      expect(failure.name).toBe(client.errorNames[to]);
      expect(failure.status).toBe(to);
    },
  );
}

function brokenStreamTests({ client, stage, ask, fail }: Scene, dialect: ScriptedDialect): void {
  const wire = wireOf(dialect);
  const asked = { model: modelIn(dialect), stream: true };
  const begun: Step[] = [head(), ...wire.opening, ...wire.content];

  test("pings between any two events are passed over", async () => {
    stage.upstream.say({ reasoning, text: ["Let me ", "look."], calls });
    const reply = await amongPings(() => ask({ ...asked, tools: true }));
    expect(reply).toMatchObject({ text: "Let me look.", finish: "calls" });
    expect(reply.calls.map(withoutId)).toEqual(calls.map(withoutId));
  });

  if (client.cannot["broken streams"]) return;
  test("an error in the middle of a stream is loud, with the provider's words", async () => {
    stage.upstream.enqueue([...begun, ...wire.failure]);
    const { message } = await fail(asked);
    if (!client.cannot["words in streams"]) expect(message).toContain("The fixture failed.");
  });

  test("a stream that is cut is no answer", async () => {
    stage.upstream.enqueue([...begun, cut()]);
    await fail(asked);
  });

  test("leaving a stream ends the provider's within 250 ms, and the client goes on to work", async () => {
    const { upstream } = stage;
    const stopped = async (): Promise<number> => {
      const ordinal = upstream.requests.length + 1;
      upstream.enqueue([...begun, stall()]);
      await ask({ ...asked, leaveAtText: true });
      const leftMs = performance.now();
      return (await (await upstream.waitForRequest(ordinal)).aborted) - leftMs;
    };
    // What else the machine does makes none of them faster.
    let fastestMs = await stopped();
    for (let round = 0; fastestMs >= 250 && round < 20; round += 1)
      fastestMs = Math.min(fastestMs, await stopped());
    expect(fastestMs).toBeLessThan(250);
    upstream.say({ text: ["Back."] });
    expect((await ask(asked)).text).toBe("Back.");
  });
}

function ownErrorTests({ client, stage, fail }: Scene): void {
  const own: readonly [
    string,
    keyof ClientUnderTest["errorNames"],
    string,
    Partial<Question>,
    Partial<ClientOptions>,
  ][] = [
    ["an unknown key", 401, "key", {}, { apiKey: "sk-svc-v1-nobody" }],
    ["a management key", 401, "key", {}, { apiKey: testManagementKey }],
    ["an unknown model", 404, "scripted/none", { model: "scripted/none" }, {}],
  ];
  test.each(own)(
    "%s is the client's error of the status %d",
    async (_, status, word, question, options) => {
      const before = stage.upstream.requests.length;
      for (const stream of [false, true]) {
        const failure = await fail({ ...question, stream }, options);
        expect(failure.name).toBe(client.errorNames[status]);
        expect(failure.message).toContain(word);
        expect(failure.status).toBe(status);
      }
      expect(stage.upstream.requests.length).toBe(before);
    },
  );
}

function retryTests({ client, stage, ask, fail }: Scene): void {
  const { errorBody } = wireOf("openai-chat");
  const patient = { retries: 2 };
  const refused = (status: number) => json(errorBody(status), { status });

  test("what cannot get better is asked once", async () => {
    const before = stage.upstream.requests.length;
    stage.upstream.enqueue(refused(400));
    await fail({}, patient);
    await fail({ model: "scripted/none" }, patient);
    expect(stage.upstream.requests.length - before).toBe(1);
  });

  if (client.cannot.retries) return;
  test("what may get better is asked again", async () => {
    const before = stage.upstream.requests.length;
    stage.upstream.enqueue(refused(500));
    stage.upstream.say({ text: ["At last."] });
    expect((await ask({}, patient)).text).toBe("At last.");
    expect(stage.upstream.requests.length - before).toBe(2);
  });

  test("what the gateway has tried everywhere is not asked again", async () => {
    const before = stage.upstream.requests.length;
    stage.upstream.enqueue(refused(500), refused(500));
    await fail({ model: modelWithBackup }, patient);
    expect(stage.upstream.requests.length - before).toBe(2);
  });
}
