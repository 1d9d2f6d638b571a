import type { McpServer, ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { BuildMcpServer } from "../../../../src/mcp/mcp-service.ts";

/** One red pixel, and an empty recording. */
const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const description = "Part of the fixture of the conformance suite.";

const text = (words: string) => ({ type: "text" as const, text: words });
const image = { type: "image" as const, data: png, mimeType: "image/png" };
const embedded = (uri: string, mimeType: string, words: string) => ({
  type: "resource" as const,
  resource: { uri, mimeType, text: words },
});

function addTools(server: McpServer): void {
  server.registerTool("test_simple_text", { description }, () => ({
    content: [text("This is a simple text response for testing.")],
  }));
  server.registerTool("test_image_content", { description }, () => ({ content: [image] }));
  server.registerTool("test_audio_content", { description }, () => ({
    content: [{ type: "audio", data: wav, mimeType: "audio/wav" }],
  }));
  server.registerTool("test_embedded_resource", { description }, () => ({
    content: [
      embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    ],
  }));
  server.registerTool("test_multiple_content_types", { description }, () => ({
    content: [
      text("Multiple content types test:"),
      image,
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  }));
  server.registerTool("test_error_handling", { description }, () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  server.registerTool("test_tool_with_progress", { description }, async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      await mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken: progressToken ?? "", progress, total: 100 },
      });
    }
    return { content: [text("done")] };
  });
  const headers = z.object({ region: z.string().meta({ "x-mcp-header": "Region" }) });
  server.registerTool("test_headers", { description, inputSchema: headers }, ({ region }) => ({
    content: [text(region)],
  }));
  server.registerTool("test_logging_tool", { description }, () => ({
    content: [text("nothing is logged without a level")],
  }));
  server.registerTool("test_streaming_elicitation", { description }, () => ({
    content: [text("nothing is asked on the stream")],
  }));
}

function addResources(
  server: McpServer,
  { ResourceTemplate }: Parameters<BuildMcpServer>[0],
): void {
  server.registerResource("static-text", "test://static-text", { mimeType: "text/plain" }, () => ({
    contents: [
      {
        uri: "test://static-text",
        mimeType: "text/plain",
        text: "This is the content of the static text resource.",
      },
    ],
  }));
  server.registerResource(
    "static-binary",
    "test://static-binary",
    { mimeType: "image/png" },
    () => ({ contents: [{ uri: "test://static-binary", mimeType: "image/png", blob: png }] }),
  );
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource(
    "template",
    template,
    { mimeType: "application/json" },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: "application/json",
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
        },
      ],
    }),
  );
}

function addPrompts(server: McpServer, { completable }: Parameters<BuildMcpServer>[0]): void {
  const user = (content: ReturnType<typeof text> | typeof image | ReturnType<typeof embedded>) => ({
    role: "user" as const,
    content,
  });
  server.registerPrompt("test_simple_prompt", { description }, () => ({
    messages: [user(text("This is a simple prompt for testing."))],
  }));
  const argsSchema = z.object({
    arg1: completable(z.string(), (value) =>
      ["paris", "park", "party"].filter((each) => each.startsWith(value)),
    ),
    arg2: z.string(),
  });
  server.registerPrompt(
    "test_prompt_with_arguments",
    { description, argsSchema },
    ({ arg1, arg2 }) => ({
      messages: [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
    }),
  );
  const resourceSchema = z.object({ resourceUri: z.string() });
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description, argsSchema: resourceSchema },
    ({ resourceUri }) => ({
      messages: [
        user(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
        user(text("Please process the embedded resource above.")),
      ],
    }),
  );
  server.registerPrompt("test_prompt_with_image", { description }, () => ({
    messages: [user(image), user(text("Please analyze the image above."))],
  }));
}

const stringForm = (name: string) => ({
  type: "object" as const,
  properties: { [name]: { type: "string" as const } },
  required: [name],
});

/** Tools that ask the client for something before they answer (revision 2026-07-28). */
function addAskingTools(
  server: McpServer,
  sdk: Parameters<BuildMcpServer>[0],
  states: States,
): void {
  const { inputRequired, inputResponse, acceptedContent } = sdk;
  const name = () =>
    inputRequired.elicit({ message: "What is your name?", requestedSchema: stringForm("name") });
  const sample = (words: string) =>
    inputRequired.createMessage({
      messages: [{ role: "user", content: text(words) }],
      maxTokens: 100,
    });
  const answersOf = ({ mcpReq }: ServerContext) => mcpReq.inputResponses;
  const capabilities = ({ mcpReq }: ServerContext): object =>
    Object(Object(mcpReq.envelope)["io.modelcontextprotocol/clientCapabilities"]) as object;

  // The SDK refuses what a client did not declare that it can answer.
  server.registerTool("test_missing_capability", { description }, () =>
    inputRequired({ inputRequests: { greeting: sample("Hello") } }),
  );
  server.registerTool("test_input_required_result_elicitation", { description }, (context) => {
    const given = acceptedContent(answersOf(context), "user_name", z.object({ name: z.string() }));
    return given === undefined
      ? inputRequired({ inputRequests: { user_name: name() } })
      : { content: [text(`Hello, ${given.name}!`)] };
  });
  server.registerTool("test_input_required_result_sampling", { description }, (context) => {
    const given = inputResponse(answersOf(context), "capital_question");
    return given.kind === "sampling"
      ? { content: [text(JSON.stringify(given.result.content))] }
      : inputRequired({
          inputRequests: { capital_question: sample("What is the capital of France?") },
        });
  });
  server.registerTool("test_input_required_result_list_roots", { description }, (context) => {
    const given = inputResponse(answersOf(context), "client_roots");
    return given.kind === "roots"
      ? { content: [text(given.roots.map(({ uri }) => uri).join(" "))] }
      : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  });
  server.registerTool("test_input_required_result_capabilities", { description }, (context) =>
    inputRequired({
      inputRequests: {
        ...("sampling" in capabilities(context) ? { greeting: sample("Generate a greeting") } : {}),
        ...("elicitation" in capabilities(context) ? { user_name: name() } : {}),
      },
    }),
  );
  addStatefulTools(server, sdk, states);
}

/** Mints and reads the state that clients carry between the rounds of a call. */
type States = ReturnType<Parameters<BuildMcpServer>[0]["createRequestStateCodec"]>;

function addStatefulTools(
  server: McpServer,
  { inputRequired, inputResponse }: Parameters<BuildMcpServer>[0],
  states: States,
): void {
  const confirmation = {
    type: "object" as const,
    properties: { ok: { type: "boolean" as const } },
    required: ["ok"],
  };
  const confirm = () =>
    inputRequired.elicit({ message: "Please confirm", requestedSchema: confirmation });
  const elicit = (message: string, field: string) =>
    inputRequired.elicit({ message, requestedSchema: stringForm(field) });
  const has = ({ mcpReq }: ServerContext, key: string): boolean =>
    inputResponse(mcpReq.inputResponses, key).kind !== "missing";

  for (const tool of [
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
  ]) {
    server.registerTool(tool, { description }, async (context) => {
      if (has(context, "confirm") && context.mcpReq.requestState() === tool)
        return { content: [text("state-ok")] };
      return inputRequired({
        inputRequests: { confirm: confirm() },
        requestState: await states.mint(tool, context),
      });
    });
  }
  server.registerTool(
    "test_input_required_result_multiple_inputs",
    { description },
    async (context) => {
      if (["user_name", "greeting", "client_roots"].every((key) => has(context, key)))
        return { content: [text("all there")] };
      return inputRequired({
        inputRequests: {
          user_name: elicit("What is your name?", "name"),
          client_roots: inputRequired.listRoots(),
          greeting: inputRequired.createMessage({
            messages: [{ role: "user", content: text("Generate a greeting") }],
            maxTokens: 50,
          }),
        },
        requestState: await states.mint("multiple", context),
      });
    },
  );
  server.registerTool(
    "test_input_required_result_multi_round",
    { description },
    async (context) => {
      const round = context.mcpReq.requestState();
      if (round === "second" && has(context, "step2"))
        return { content: [text("both steps are done")] };
      const isSecond = round === "first" && has(context, "step1");
      const inputRequests = isSecond
        ? { step2: elicit("Step 2: What is your favorite color?", "color") }
        : { step1: elicit("Step 1: What is your name?", "name") };
      return inputRequired({
        inputRequests,
        requestState: await states.mint(isSecond ? "second" : "first", context),
      });
    },
  );
  server.registerPrompt("test_input_required_result_prompt", { description }, (context) => {
    if (has(context, "user_context"))
      return { messages: [{ role: "user", content: text("with context") }] };
    return inputRequired({
      inputRequests: { user_context: elicit("What context should the prompt use?", "context") },
    });
  });
}

/**
 * The tools, resources and prompts that the conformance suite asks a server to have, behind the
 * gateway's own transport.
 */
export const buildFixtureServer: BuildMcpServer = (sdk) => {
  const states = sdk.createRequestStateCodec({ key: "fixture-key-of-the-conformance-suite" });
  const server = new sdk.McpServer(
    { name: "fixture", version: "1" },
    {
      capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} },
      requestState: { verify: states.verify },
    },
  );
  addTools(server);
  addAskingTools(server, sdk, states);
  addResources(server, sdk);
  addPrompts(server, sdk);
  return server;
};
